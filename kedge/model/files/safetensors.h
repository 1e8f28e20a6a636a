#pragma once
// The safetensors file format: named tensors after a JSON header, read in place and written completely or not at all. Nothing in a file
// is trusted: every fault is a UsageError that names the file and the tensor. Independent of models; does not convert numbers.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/core/files.h"

namespace kedge {

// What kedge computes with.
enum class WeightType { f32, bf16, f16 };
[[nodiscard]] size_t bytes_of(WeightType type);
[[nodiscard]] std::string_view name_of(WeightType type);  // as files spell it: "F32"

struct TensorEntry {
  std::string name;
  std::optional<WeightType> type;  // none: one of the format's others, such as BOOL, which folders may carry unused
  std::vector<int64_t> shape;      // empty: one number
  size_t begin = 0, end = 0;       // of its bytes in the file's data
  std::string type_name = {};      // as the file spells it; a writer needs it only if `type` is none
};

// The entry's type; a UsageError that opens with `where` if kedge cannot compute with it.
[[nodiscard]] WeightType weight_type(const TensorEntry& entry, std::string_view where);

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] inline SafetensorsMetadata weights_metadata() { return {{"format", "pt"}}; }  // as transformers writes it

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  // in order of offset; they cover the data without gaps
  SafetensorsMetadata metadata;
};

// Header text to entries; `data_size` bytes follow it. `origin` names the file in errors.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::string_view header, size_t data_size, const std::string& origin);

// A complete file in memory. `data` is a part of the bytes given.
struct SafetensorsView {
  SafetensorsHeader header;
  std::string_view data;
};
[[nodiscard]] SafetensorsView view_safetensors(std::string_view file, const std::string& origin);

// The bytes before the data, including length and padding; the data begins at a multiple of 8. Fills in begin and end, in the
// order given. Duplicate names, too large shapes and the like are UsageErrors.
[[nodiscard]] std::string safetensors_preamble(std::vector<TensorEntry>& entries, const SafetensorsMetadata& metadata,
                                               const std::string& origin);

// A file mapped for reading. Movable; safe to read from several threads. Entries and bytes live as long as the object.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const Path& path);

  [[nodiscard]] const std::vector<TensorEntry>& entries() const { return view_.header.entries; }
  [[nodiscard]] const SafetensorsMetadata& metadata() const { return view_.header.metadata; }
  [[nodiscard]] const Path& path() const { return file_.path(); }

  [[nodiscard]] std::string_view bytes(const TensorEntry& entry) const { return view_.data.substr(entry.begin, entry.end - entry.begin); }
  // Releases its pages; they are read again on access.
  void drop(const TensorEntry& entry) const;

 private:
  MappedFile file_;
  SafetensorsView view_;
};

// Writes a file next to its final name; `finish` syncs and renames it. Without that nothing is left. Readers prefer tensors
// aligned: if types are mixed, give the wider ones first.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const Path& path, std::vector<TensorEntry> entries, const SafetensorsMetadata& metadata = weights_metadata());

  // The next bytes of the current tensor: all of it, or a piece.
  void write(std::string_view bytes);
  void finish();

 private:
  std::vector<TensorEntry> entries_;
  AtomicFile file_;
  size_t next_ = 0;     // the current entry
  size_t written_ = 0;  // bytes of data
};

}  // namespace kedge
