#include "kedge/model/files/safetensors.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "kedge/core/error.h"
#include "kedge/core/json.h"

namespace kedge {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 8;
constexpr size_t kMaxHeaderBytes = 100'000'000;  // as the format's own library
constexpr auto kMaxHeaderCommas = 4'000'000;     // bounds the values a header unfolds to in memory; real ones have ten a tensor
constexpr size_t kMaxDims = 64;                  // as torch
constexpr std::string_view kMetadata = "__metadata__";

struct Dtype {
  std::string_view name;
  size_t bits;
  std::optional<WeightType> type = std::nullopt;
};
// All of the format's (version 0.8).
constexpr std::array kDtypes = {
    Dtype{"F32", 32, WeightType::f32},
    Dtype{"BF16", 16, WeightType::bf16},
    Dtype{"F16", 16, WeightType::f16},
    Dtype{"BOOL", 8},
    Dtype{"U8", 8},
    Dtype{"I8", 8},
    Dtype{"I16", 16},
    Dtype{"U16", 16},
    Dtype{"I32", 32},
    Dtype{"U32", 32},
    Dtype{"I64", 64},
    Dtype{"U64", 64},
    Dtype{"F64", 64},
    Dtype{"C64", 64},
    Dtype{"F4", 4},
    Dtype{"F6_E2M3", 6},
    Dtype{"F6_E3M2", 6},
    Dtype{"F8_E4M3", 8},
    Dtype{"F8_E4M3FNUZ", 8},
    Dtype{"F8_E5M2", 8},
    Dtype{"F8_E5M2FNUZ", 8},
    Dtype{"F8_E8M0", 8},
};

const Dtype& dtype_of(WeightType type) {
  return *std::find_if(kDtypes.begin(), kDtypes.end(), [&](const Dtype& dtype) { return dtype.type == type; });
}

const Dtype& dtype_named(std::string_view name, const std::string& where) {
  const auto* found = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const Dtype& dtype) { return dtype.name == name; });
  check(found != kDtypes.end(), where, ": the format has no dtype ", name);
  return *found;
}

std::string shown(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t size : shape) text += str(text.size() > 1 ? ", " : "", size);
  return text + "]";
}

size_t stored_bytes(const TensorEntry& entry, const Dtype& dtype, const std::string& where) {
  check(entry.shape.size() <= kMaxDims, where, ": ", entry.shape.size(), " dimensions, at most ", kMaxDims, " are read");
  size_t bits = dtype.bits;
  for (const int64_t size : entry.shape) {
    if (size < 0) throw UsageError(str(where, ": shape ", shown(entry.shape), " has a negative size"));
    if (__builtin_mul_overflow(bits, static_cast<size_t>(size), &bits))
      throw UsageError(str(where, ": shape ", shown(entry.shape), " is too large"));
  }
  if (bits % 8 != 0) throw UsageError(str(where, ": ", dtype.name, " of shape ", shown(entry.shape), " does not fill whole bytes"));
  return bits / 8;
}

std::pair<size_t, size_t> parse_offsets(const Json& json, const std::string& where) {
  const Json::Array& offsets = json.as_array(where);
  check(offsets.size() == 2, where, ": expected a begin and an end, found ", offsets.size(), " values");
  const int64_t begin = offsets[0].as_integer(where);
  const int64_t end = offsets[1].as_integer(where);
  check(0 <= begin && begin <= end, where, ": expected 0 <= begin <= end, found [", begin, ", ", end, "]");
  return {begin, end};
}

TensorEntry parse_entry(const std::string& name, const Json& json, const std::string& where) {
  TensorEntry entry{.name = name, .type = {}, .shape = {}};
  const Dtype& dtype = dtype_named(json.at("dtype", where).as_text(where + ": dtype"), where);
  entry.type = dtype.type;
  entry.type_name = dtype.name;
  const std::string where_shape = where + ": shape";
  for (const Json& size : json.at("shape", where).as_array(where_shape)) entry.shape.push_back(size.as_integer(where_shape));
  std::tie(entry.begin, entry.end) = parse_offsets(json.at("data_offsets", where), where + ": data_offsets");
  const size_t wanted = stored_bytes(entry, dtype, where);
  if (entry.end - entry.begin != wanted)
    throw UsageError(str(where, ": ", dtype.name, " of shape ", shown(entry.shape), " takes ", wanted, " bytes, but data_offsets [",
                         entry.begin, ", ", entry.end, "] give it ", entry.end - entry.begin));
  return entry;
}

SafetensorsMetadata parse_metadata(const Json& json, const std::string& where) {
  SafetensorsMetadata metadata;
  for (const auto& [key, value] : json.as_object(where)) metadata.emplace_back(key, value.as_text(str(where, ".", key)));
  return metadata;
}

// The format requires the tensors to cover the data: no byte is in none of them or in two.
void check_coverage(const std::vector<TensorEntry>& entries, size_t data_size, const std::string& origin) {
  size_t covered = 0;
  for (const TensorEntry& entry : entries) {
    check(entry.end <= data_size, origin, ": tensor \"", entry.name, "\" ends at byte ", entry.end, " of the data, but the file holds ",
          data_size, ": truncated or an incomplete download");
    check(entry.begin >= covered, origin, ": tensor \"", entry.name, "\" begins at byte ", entry.begin,
          " of the data, inside the tensor before it, which ends at ", covered);
    check(entry.begin == covered, origin, ": bytes ", covered, " to ", entry.begin, " of the data, before tensor \"", entry.name,
          "\", belong to no tensor");
    covered = entry.end;
  }
  check(covered == data_size, origin, ": ", data_size - covered, " bytes follow the last tensor");
}

size_t parse_length(std::string_view bytes) {
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8U | static_cast<unsigned char>(bytes[i]);
  return length;
}

std::string format_length(uint64_t length) {
  std::string bytes;
  for (size_t i = 0; i < kLengthBytes; ++i, length >>= 8U) bytes += static_cast<char>(length & 0xFFU);
  return bytes;
}

}  // namespace

size_t bytes_of(WeightType type) { return dtype_of(type).bits / 8; }

std::string_view name_of(WeightType type) { return dtype_of(type).name; }

WeightType weight_type(const TensorEntry& entry, std::string_view where) {
  check(entry.type.has_value(), where, ": expected F32, BF16 or F16, found ", entry.type_name);
  return *entry.type;
}

SafetensorsHeader parse_safetensors_header(std::string_view header, size_t data_size, const std::string& origin) {
  const std::string where = origin + ": header";
  check(header.size() <= kMaxHeaderBytes, where, ": ", header.size(), " bytes, at most ", kMaxHeaderBytes, " are read");
  check(header.starts_with('{'), where, ": expected a JSON object from its first byte on; is this a safetensors file?");
  const auto commas = std::count(header.begin(), header.end(), ',');
  check(commas <= kMaxHeaderCommas, where, ": ", commas, " commas, at most ", kMaxHeaderCommas, " are read");
  SafetensorsHeader parsed;
  const Json json = Json::parse(header, where);
  for (const auto& [name, value] : json.as_object(where)) {
    if (name == kMetadata) {
      parsed.metadata = parse_metadata(value, str(origin, ": ", kMetadata));
    } else {
      parsed.entries.push_back(parse_entry(name, value, str(origin, ": tensor \"", name, "\"")));
    }
  }
  std::stable_sort(parsed.entries.begin(), parsed.entries.end(),
                   [](const TensorEntry& a, const TensorEntry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  check_coverage(parsed.entries, data_size, origin);
  return parsed;
}

SafetensorsView view_safetensors(std::string_view file, const std::string& origin) {
  check(!file.starts_with("version https://git-lfs"), origin, ": a Git LFS pointer, not the file itself; git lfs pull fetches it");
  check(file.size() >= kLengthBytes, origin, ": ", file.size(),
        " bytes, too short for a safetensors file: truncated or an incomplete download");
  const size_t length = parse_length(file);
  check(length <= kMaxHeaderBytes, origin, ": its first bytes announce a header of ", length, " bytes, at most ", kMaxHeaderBytes,
        " are read; is this a safetensors file?");
  file.remove_prefix(kLengthBytes);
  check(length <= file.size(), origin, ": announces a header of ", length, " bytes, but ", file.size(),
        " follow: truncated or an incomplete download");
  const std::string_view data = file.substr(length);
  return {parse_safetensors_header(file.substr(0, length), data.size(), origin), data};
}

std::string safetensors_preamble(std::vector<TensorEntry>& entries, const SafetensorsMetadata& metadata, const std::string& origin) {
  Json header = Json::Object{};
  if (!metadata.empty()) {
    Json json = Json::Object{};
    for (const auto& [key, value] : metadata) json.append(key, value);
    header.append(std::string(kMetadata), std::move(json));
  }
  size_t data_size = 0;
  for (TensorEntry& entry : entries) {
    const std::string where = str(origin, ": tensor \"", entry.name, "\"");
    const Dtype& dtype = entry.type ? dtype_of(*entry.type) : dtype_named(entry.type_name, where);
    entry.begin = data_size;
    entry.end = data_size += stored_bytes(entry, dtype, where);
    const auto offset = [](size_t value) { return Json(static_cast<int64_t>(value)); };
    header.append(entry.name, Json::Object{{"dtype", dtype.name},
                                           {"shape", Json::Array(entry.shape.begin(), entry.shape.end())},
                                           {"data_offsets", Json::Array{offset(entry.begin), offset(entry.end)}}});
  }
  std::string text = header.dump();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  static_cast<void>(parse_safetensors_header(text, data_size, origin));  // what is written can be read
  return format_length(text.size()) + text;
}

SafetensorsFile::SafetensorsFile(const Path& path) : file_(path), view_(view_safetensors(file_.text(), path.string())) {}

void SafetensorsFile::drop(const TensorEntry& entry) const {
  const size_t data = file_.size() - view_.data.size();
  file_.drop_pages(data + entry.begin, data + entry.end);
}

SafetensorsWriter::SafetensorsWriter(const Path& path, std::vector<TensorEntry> entries, const SafetensorsMetadata& metadata)
    : entries_(std::move(entries)), file_(path) {
  file_.append(safetensors_preamble(entries_, metadata, path.string()));
}

void SafetensorsWriter::write(std::string_view bytes) {
  while (next_ < entries_.size() && written_ == entries_[next_].end) ++next_;
  const size_t room = next_ < entries_.size() ? entries_[next_].end - written_ : 0;
  ensure(bytes.size() <= room, file_.path().string(), ": ", bytes.size(), " bytes written where ",
         next_ < entries_.size() ? entries_[next_].name : "the end", " has room for ", room);
  file_.append(bytes);
  written_ += bytes.size();
}

void SafetensorsWriter::finish() {
  const size_t wanted = entries_.empty() ? 0 : entries_.back().end;
  ensure(written_ == wanted, file_.path().string(), ": finished after ", written_, " of ", wanted, " bytes");
  file_.commit();
}

}  // namespace kedge
