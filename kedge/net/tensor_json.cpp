#include "kedge/net/tensor_json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <utility>

#include "kedge/core/utf8.h"
#include "kedge/net/request_error.h"

namespace kedge {
namespace {

constexpr size_t kMaxNesting = 100;

// Calls `use` with a value of the C++ type of the tensor's numbers. Not for texts and 16-bit floats.
template <typename Use>
void with_number_type(WireType type, Use&& use) {
  switch (type) {
    case WireType::int8:
      return use(int8_t{});
    case WireType::int16:
      return use(int16_t{});
    case WireType::int32:
      return use(int32_t{});
    case WireType::int64:
      return use(int64_t{});
    case WireType::uint8:
      return use(uint8_t{});
    case WireType::uint16:
      return use(uint16_t{});
    case WireType::uint32:
      return use(uint32_t{});
    case WireType::uint64:
      return use(uint64_t{});
    case WireType::fp32:
      return use(float{});
    case WireType::fp64:
      return use(double{});
    case WireType::boolean:
      return use(bool{});
    case WireType::fp16:
    case WireType::bf16:
    case WireType::bytes:
      break;
  }
  throw Bug(str(name_of(type), " as JSON numbers"));
}

// False if the value is not such a number, or T cannot hold it.
template <typename T>
bool read_number(const Json& value, T& number) {
  if constexpr (std::same_as<T, bool>) {
    if (!value.is_bool()) return false;
    number = value.as_bool("");
    return true;
  } else if constexpr (std::integral<T>) {
    if (!value.is_integer() || !std::in_range<T>(value.as_integer(""))) return false;
    number = static_cast<T>(value.as_integer(""));
    return true;
  } else {
    if (!value.is_number()) return false;
    number = static_cast<T>(value.as_number(""));
    return std::isfinite(number);
  }
}

std::string found_text(const Json& value) {
  if (value.is_array() || value.is_object()) return std::string(name_of(value.kind()));
  const std::string text = value.dump();
  return text.size() <= 60 ? text : text.substr(0, utf8_valid_prefix(std::string_view(text).substr(0, 57))) + "...";
}

// Reads lists into the bytes of one tensor.
class DataReader {
 public:
  DataReader(std::string_view where, WireTensor& tensor) : where_(where), tensor_(tensor), rest_(tensor.shape.size() + 1, 1) {
    for (size_t i = tensor.shape.size(); i-- > 0;)
      if (__builtin_mul_overflow(rest_[i + 1], tensor.shape[i], &rest_[i])) rest_[i] = std::numeric_limits<int64_t>::max();
  }

  // `level`: the nesting depth of the list.
  void read(const Json::Array& items, size_t level) {
    check_request(level < kMaxNesting, where_, ": data is nested deeper than ", kMaxNesting, " levels");
    const bool is_nested = !items.empty() && items.front().is_array();
    if (is_nested && level + 1 >= tensor_.shape.size())
      throw RequestError(400, str(where_, ": data is nested deeper than the shape ", shape_json(tensor_.shape)));
    const int64_t wanted = is_nested ? tensor_.shape[level] : rest_[level];
    if (!std::cmp_equal(items.size(), wanted))
      throw RequestError(400,
                         str(where_, ": data: expected ", wanted, is_nested ? " lists" : " values", level == 0 ? "" : " in an inner list",
                             " for the shape ", shape_json(tensor_.shape), ", found ", items.size()));
    if (is_nested) {
      for (const Json& item : items) {
        if (!item.is_array()) wrong(item, "only lists");
        read(item.as_array(""), level + 1);
      }
    } else if (tensor_.type == WireType::bytes) {
      for (const Json& item : items) {
        if (!item.is_text()) wrong(item, "a string");
        append_text(tensor_.data, item.as_text(""));
      }
    } else {
      with_number_type(tensor_.type, [&](auto number) { read_numbers(items, number); });
    }
  }

 private:
  template <typename T>
  void read_numbers(const Json::Array& items, T number) {
    for (const Json& item : items) {
      if (!read_number(item, number))
        wrong(item, std::same_as<T, bool> ? "true or false" : std::integral<T> ? "an integer in range" : "a number in range");
      tensor_.data.append(reinterpret_cast<const char*>(&number), sizeof(T));
    }
  }
  [[noreturn]] void wrong(const Json& item, std::string_view wanted) const {
    throw RequestError(400, str(where_, ": data: expected ", wanted, " for ", name_of(tensor_.type), ", found ", found_text(item)));
  }

  std::string_view where_;
  WireTensor& tensor_;
  std::vector<int64_t> rest_;  // elements of a list at depth i; the largest number where they cannot be counted
};

// The fewest digits that give the same float when read as one, if they also do when read as a double and rounded; else the double's.
std::string short_text(float value) {
  std::array<char, 32> digits{};
  auto* const end = std::to_chars(digits.begin(), digits.end(), value).ptr;
  double read = 0;
  std::from_chars(digits.begin(), end, read);
  return shortest(static_cast<float>(read) == value ? read : static_cast<double>(value));
}

template <typename T>
void append_number(T value, const WireTensor& tensor, std::string& out) {
  if constexpr (std::same_as<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::integral<T>) {
    out += std::to_string(value);
  } else {
    if (!std::isfinite(value))
      throw RequestError(500, str("output \"", tensor.name, "\": ", value, " cannot be written as JSON; ask for it with binary_data"));
    if constexpr (std::same_as<T, float>)
      out += short_text(value);
    else
      out += shortest(value);
  }
}

[[noreturn]] void refuse_half(const WireTensor& tensor, std::string_view where) {
  throw RequestError(400, str(where, ": ", name_of(tensor.type), " cannot be sent as JSON; send it as binary data"));
}

bool is_half(WireType type) { return type == WireType::fp16 || type == WireType::bf16; }

}  // namespace

void read_json_data(const Json& data, std::string_view where, WireTensor& tensor) {
  if (is_half(tensor.type)) refuse_half(tensor, where);
  check_request(data.is_array(), where, ": data: expected a list, found ", found_text(data));
  static_cast<void>(num_elements(tensor.shape));  // no negative sizes
  tensor.data.clear();
  DataReader(where, tensor).read(data.as_array(where), 0);
}

void append_json_data(const WireTensor& tensor, std::string& out) {
  if (is_half(tensor.type)) refuse_half(tensor, str("output \"", tensor.name, "\""));
  out += '[';
  bool is_first = true;
  const auto comma = [&] {
    if (!std::exchange(is_first, false)) out += ',';
  };
  if (tensor.type == WireType::bytes) {
    for (const std::string& text : text_values(tensor)) {
      if (utf8_valid_prefix(text) != text.size())
        throw RequestError(
            500, str("output \"", tensor.name, "\": a text that is not UTF-8 cannot be written as JSON; ask for it with ", "binary_data"));
      comma();
      out += Json(text).dump();
    }
  } else {
    with_number_type(tensor.type, [&]<typename T>(T number) {
      for (size_t at = 0; at + sizeof(T) <= tensor.data.size(); at += sizeof(T)) {
        std::memcpy(&number, tensor.data.data() + at, sizeof(T));
        comma();
        append_number(number, tensor, out);
      }
    });
  }
  out += ']';
}

}  // namespace kedge
