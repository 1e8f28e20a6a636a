#pragma once
// The weights of a model folder by tensor name, in one file or in shards with an index. Independent of models: which
// names are expected is up to the caller.
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/model/files/safetensors.h"

namespace kedge {

// Is this the name of a file that only Python's pickle can read? The error then shows what to do.
[[nodiscard]] bool is_pickled(const Path& file);
inline constexpr std::string_view kPickledRefusal =
    "pickled weights are not read, because reading them can run code; load them with Python's transformers (peft for an adapter) and "
    "save_pretrained writes safetensors";

// Movable; safe to read from several threads. Entries and bytes live as long as the object.
class WeightFiles {
 public:
  // model.safetensors, else the shards of model.safetensors.index.json. Missing or contradicting shards are UsageErrors.
  explicit WeightFiles(const Path& folder);
  // One file by its name, such as an adapter's adapter_model.safetensors.
  static WeightFiles single(const Path& file);

  // Null: no such tensor. Tied tensors are stored once, and the file's metadata may map a name to that of the stored bytes;
  // then the entry's name is not the requested one. `names` has only stored ones, sorted.
  [[nodiscard]] const TensorEntry* find(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> names() const;

  // Of an existing tensor; otherwise a UsageError with similar names.
  [[nodiscard]] std::string_view bytes(std::string_view name) const;
  void drop(std::string_view name) const;  // releases its pages

  // For errors: "FILE: tensor NAME".
  [[nodiscard]] std::string where(std::string_view name) const;

 private:
  struct Place {
    size_t file;
    size_t entry;
  };

  WeightFiles() = default;
  void add(const Path& file);
  void add_shards(const Path& index);
  [[nodiscard]] const Place* look_up(std::string_view name) const;
  [[nodiscard]] const Place& place_of(std::string_view name) const;
  [[nodiscard]] const TensorEntry& entry_at(const Place& place) const { return files_[place.file].entries()[place.entry]; }

  Path origin_;  // the folder or the single file
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Place, std::less<>> places_;
  std::map<std::string, std::string, std::less<>> aliases_;  // a tied tensor's name to the stored one's
};

}  // namespace kedge
