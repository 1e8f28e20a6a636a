#include "kedge/net/wire_tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "kedge/core/error.h"
#include "kedge/net/request_error.h"

namespace kedge {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors travel little-endian and are read in place");

struct TypeFacts {
  std::string_view name, config_name;
  int64_t num_bytes;
};
// In the order of WireType.
constexpr std::array<TypeFacts, 14> kTypes = {{{"BOOL", "TYPE_BOOL", 1},
                                               {"INT8", "TYPE_INT8", 1},
                                               {"INT16", "TYPE_INT16", 2},
                                               {"INT32", "TYPE_INT32", 4},
                                               {"INT64", "TYPE_INT64", 8},
                                               {"UINT8", "TYPE_UINT8", 1},
                                               {"UINT16", "TYPE_UINT16", 2},
                                               {"UINT32", "TYPE_UINT32", 4},
                                               {"UINT64", "TYPE_UINT64", 8},
                                               {"FP16", "TYPE_FP16", 2},
                                               {"BF16", "TYPE_BF16", 2},
                                               {"FP32", "TYPE_FP32", 4},
                                               {"FP64", "TYPE_FP64", 8},
                                               {"BYTES", "TYPE_STRING", 0}}};
constexpr size_t kLengthBytes = 4;  // before every text

const TypeFacts& facts_of(WireType type) { return kTypes.at(static_cast<size_t>(type)); }

bool find_type(std::string_view TypeFacts::*name_member, std::string_view name, WireType& type) {
  const auto* found = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeFacts& facts) { return facts.*name_member == name; });
  if (found == kTypes.end()) return false;
  type = static_cast<WireType>(found - kTypes.begin());
  return true;
}

template <typename T>
WireTensor number_tensor(WireType type, std::string name, std::vector<int64_t> shape, std::span<const T> values) {
  ensure(num_elements(shape) == static_cast<int64_t>(values.size()), "tensor ", name, ": ", values.size(), " values for the shape ",
         shape_json(shape));
  std::string data(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return {.name = std::move(name), .type = type, .shape = std::move(shape), .data = std::move(data)};
}

template <typename T>
std::span<const T> number_values(const WireTensor& tensor, WireType type) {
  ensure(tensor.type == type, "tensor ", tensor.name, ": holds ", name_of(tensor.type), ", read as ", name_of(type));
  ensure(reinterpret_cast<uintptr_t>(tensor.data.data()) % alignof(T) == 0, "tensor ", tensor.name, ": its bytes are not aligned");
  return {reinterpret_cast<const T*>(tensor.data.data()), tensor.data.size() / sizeof(T)};
}

// Takes the text at the front of `bytes` away and returns it; none if the bytes end before it does.
bool next_text(std::string_view& bytes, std::string_view& text) {
  if (bytes.size() < kLengthBytes) return false;
  uint32_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  bytes.remove_prefix(kLengthBytes);
  if (length > bytes.size()) return false;
  text = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return true;
}

// Calls `use` with every text; RequestError unless there are as many as the shape says and no byte is left.
template <typename Use>
void for_each_text(const WireTensor& tensor, Use&& use) {
  const int64_t count = num_elements(tensor.shape);
  std::string_view rest = tensor.data;
  for (int64_t i = 0; i < count; ++i) {
    std::string_view text;
    check_request(next_text(rest, text), "tensor \"", tensor.name, "\": its ", tensor.data.size(), " bytes end within text ", i, " of ",
                  count);
    use(text);
  }
  check_request(rest.empty(), "tensor \"", tensor.name, "\": ", rest.size(), " bytes are left over after ", count, " texts");
}

int64_t num_rows(const WireTensor& tensor) {
  ensure(!tensor.shape.empty(), "tensor ", tensor.name, ": a single value has no rows");
  return tensor.shape.front();
}

// Elements of one row; 0 if there are no rows.
int64_t row_elements(const WireTensor& tensor) { return num_rows(tensor) == 0 ? 0 : num_elements(tensor.shape) / num_rows(tensor); }

}  // namespace

std::string_view name_of(WireType type) { return facts_of(type).name; }

std::string_view config_name_of(WireType type) { return facts_of(type).config_name; }

bool find_wire_type(std::string_view name, WireType& type) { return find_type(&TypeFacts::name, name, type); }

bool find_config_wire_type(std::string_view name, WireType& type) { return find_type(&TypeFacts::config_name, name, type); }

int64_t bytes_of(WireType type) { return facts_of(type).num_bytes; }

std::string shape_json(std::span<const int64_t> shape) {
  std::string text = "[";
  for (const int64_t size : shape) {
    if (text.size() > 1) text += ',';
    text += std::to_string(size);
  }
  return text + "]";
}

int64_t num_elements(const std::vector<int64_t>& shape) {
  check_request(std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size >= 0; }), "the shape ", shape_json(shape),
                " has a negative size");
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t count = 1;
  for (const int64_t size : shape)
    check_request(!__builtin_mul_overflow(count, size, &count), "the shape ", shape_json(shape), " has more elements than can be counted");
  return count;
}

void check_tensor_data(const WireTensor& tensor) {
  if (tensor.type == WireType::bytes) {
    for_each_text(tensor, [](std::string_view) {});
    return;
  }
  int64_t wanted = 0;
  check_request(!__builtin_mul_overflow(num_elements(tensor.shape), bytes_of(tensor.type), &wanted), "tensor \"", tensor.name,
                "\": the shape ", shape_json(tensor.shape), " has more bytes than can be counted");
  check_request(std::cmp_equal(wanted, tensor.data.size()), "tensor \"", tensor.name, "\": ", name_of(tensor.type), " of shape ",
                shape_json(tensor.shape), " needs ", wanted, " bytes, found ", tensor.data.size());
  if (tensor.type == WireType::boolean)
    check_request(std::all_of(tensor.data.begin(), tensor.data.end(), [](char byte) { return byte == 0 || byte == 1; }), "tensor \"",
                  tensor.name, "\": BOOL allows only bytes 0 and 1");
}

WireTensor int64_tensor(std::string name, std::vector<int64_t> shape, std::span<const int64_t> values) {
  return number_tensor(WireType::int64, std::move(name), std::move(shape), values);
}

WireTensor fp32_tensor(std::string name, std::vector<int64_t> shape, std::span<const float> values) {
  return number_tensor(WireType::fp32, std::move(name), std::move(shape), values);
}

WireTensor text_tensor(std::string name, std::vector<int64_t> shape, std::span<const std::string> texts) {
  ensure(num_elements(shape) == static_cast<int64_t>(texts.size()), "tensor ", name, ": ", texts.size(), " texts for the shape ",
         shape_json(shape));
  WireTensor tensor{.name = std::move(name), .type = WireType::bytes, .shape = std::move(shape)};
  tensor.data.reserve(std::accumulate(texts.begin(), texts.end(), size_t{0},
                                      [](size_t sum, const auto& text) { return sum + kLengthBytes + text.size(); }));
  for (const std::string& text : texts) append_text(tensor.data, text);
  return tensor;
}

void append_text(std::string& data, std::string_view text) {
  check_request(std::in_range<uint32_t>(text.size()), "a text of ", text.size(), " bytes; the limit is 4294967295");
  const auto length = static_cast<uint32_t>(text.size());
  data.append(reinterpret_cast<const char*>(&length), kLengthBytes);
  data += text;
}

std::span<const int64_t> int64_values(const WireTensor& tensor) { return number_values<int64_t>(tensor, WireType::int64); }

std::span<const float> fp32_values(const WireTensor& tensor) { return number_values<float>(tensor, WireType::fp32); }

std::vector<std::string> text_values(const WireTensor& tensor) {
  ensure(tensor.type == WireType::bytes, "tensor ", tensor.name, ": holds ", name_of(tensor.type), ", read as texts");
  std::vector<std::string> texts;
  for_each_text(tensor, [&](std::string_view text) { texts.emplace_back(text); });
  return texts;
}

const WireTensor* find_tensor(std::span<const WireTensor> tensors, std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const WireTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

WireTensor join_rows(std::span<const WireTensor* const> parts) {
  ensure(!parts.empty(), "no tensors to join");
  const WireTensor& first = *parts.front();
  WireTensor joined{.name = first.name, .type = first.type, .shape = first.shape};
  int64_t rows = 0;
  size_t num_bytes = 0;
  for (const WireTensor* part : parts) {
    rows += num_rows(*part);
    num_bytes += part->data.size();
    ensure(part->type == first.type && std::equal(part->shape.begin() + 1, part->shape.end(), first.shape.begin() + 1, first.shape.end()),
           "tensor ", first.name, ": rows of ", name_of(first.type), " ", shape_json(first.shape), " and of ", name_of(part->type), " ",
           shape_json(part->shape), " cannot be joined");
  }
  joined.shape.front() = rows;
  joined.data.reserve(num_bytes);
  for (const WireTensor* part : parts) joined.data += part->data;
  return joined;
}

WireTensor take_rows(const WireTensor& tensor, int64_t begin, int64_t count) {
  ensure(begin >= 0 && count >= 0 && begin <= num_rows(tensor) - count, "tensor ", tensor.name, ": rows ", begin, " to ", begin + count,
         " of ", num_rows(tensor));
  WireTensor taken{.name = tensor.name, .type = tensor.type, .shape = tensor.shape};
  taken.shape.front() = count;
  const int64_t elements = row_elements(tensor);
  if (tensor.type != WireType::bytes) {
    const int64_t row_bytes = elements * bytes_of(tensor.type);
    taken.data = tensor.data.substr(static_cast<size_t>(begin * row_bytes), static_cast<size_t>(count * row_bytes));
    return taken;
  }
  std::string_view rest = tensor.data;
  std::string_view text;
  const auto skip = [&](int64_t num_texts) {
    for (int64_t i = 0; i < num_texts; ++i) ensure(next_text(rest, text), "tensor ", tensor.name, ": its texts were never checked");
  };
  skip(begin * elements);
  const std::string_view from = rest;
  skip(count * elements);
  taken.data = from.substr(0, from.size() - rest.size());
  return taken;
}

}  // namespace kedge
