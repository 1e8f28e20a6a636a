#include "kedge/model/files/weight_files.h"

#include <algorithm>
#include <set>

#include "kedge/config/nearest.h"
#include "kedge/core/error.h"
#include "kedge/core/json.h"

namespace kedge {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

// Trainers write pickled files next to the weights that are not weights.
bool is_pickled_weights(const Path& file) {
  const std::string name = file.filename().string();
  if (name.ends_with(".pt")) return name != "optimizer.pt" && name != "scheduler.pt";
  return is_pickled(file) && (name.starts_with("pytorch_model") || name.starts_with("adapter_model") || name.starts_with("consolidated"));
}

[[noreturn]] void refuse_folder_without_weights(const Path& folder) {
  std::vector<std::string> pickled;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (is_pickled_weights(entry.path())) pickled.push_back(entry.path().filename().string());
  std::string found = is_file(folder / "adapter_model.safetensors")
                          ? "; adapter_model.safetensors holds an adapter, which is not a model without its base"
                          : "";
  if (!pickled.empty()) found = str("; found ", *std::min_element(pickled.begin(), pickled.end()), ": ", kPickledRefusal);
  throw UsageError(str(folder.string(), ": no ", kSingleFile, " and no ", kIndexFile, found));
}

// An index is not trusted to name files elsewhere.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace

bool is_pickled(const Path& file) {
  const std::string extension = file.extension().string();
  return extension == ".bin" || extension == ".pt" || extension == ".pth";
}

WeightFiles::WeightFiles(const Path& folder) : origin_(folder) {
  check(is_folder(folder), folder.string(), ": no such folder");
  if (is_file(folder / kSingleFile)) {
    add(folder / kSingleFile);
  } else if (is_file(folder / kIndexFile)) {
    add_shards(folder / kIndexFile);
  } else {
    refuse_folder_without_weights(folder);
  }
}

WeightFiles WeightFiles::single(const Path& file) {
  check(!is_pickled(file), file.string(), ": ", kPickledRefusal);
  WeightFiles weights;
  weights.origin_ = file;
  weights.add(file);
  return weights;
}

void WeightFiles::add(const Path& file) {
  const SafetensorsFile& added = files_.emplace_back(file);
  for (size_t i = 0; i < added.entries().size(); ++i) {
    const std::string& name = added.entries()[i].name;
    const auto [known, is_new] = places_.try_emplace(name, Place{files_.size() - 1, i});
    check(is_new, where(name), " is in ", file.filename().string(), " too");
  }
  for (const auto& [key, value] : added.metadata())
    if (places_.contains(value)) aliases_.try_emplace(key, value);
}

void WeightFiles::add_shards(const Path& index) {
  const Json json = Json::parse(read_text(index), index.string());
  const std::string where_map = index.string() + ": weight_map";
  const Json::Object& weight_map = json.at("weight_map", index.string()).as_object(where_map);
  check(!weight_map.empty(), where_map, ": names no tensor");
  std::set<std::string> shards;
  for (const auto& [name, shard] : weight_map) {
    const std::string& file = shard.as_text(str(where_map, ".", name));
    check(is_plain_name(file), where_map, ".", name, ": expected the name of a file in the folder, found \"", file, "\"");
    shards.insert(file);
  }
  for (const std::string& shard : shards) {
    const Path file = index.parent_path() / shard;
    check(is_file(file), index.string(), ": names ", shard, ", which is not in the folder; an incomplete download?");
    add(file);
  }
  for (const auto& [name, shard] : weight_map) {
    const auto found = places_.find(name);
    check(found != places_.end() && files_[found->second.file].path().filename() == shard.as_text(where_map), index.string(),
          ": says that ", shard.as_text(where_map), " holds tensor ", name, ", but it does not");
  }
}

const WeightFiles::Place* WeightFiles::look_up(std::string_view name) const {
  if (const auto found = places_.find(name); found != places_.end()) return &found->second;
  const auto alias = aliases_.find(name);
  return alias == aliases_.end() ? nullptr : &places_.find(alias->second)->second;
}

const TensorEntry* WeightFiles::find(std::string_view name) const {
  const Place* place = look_up(name);
  return place == nullptr ? nullptr : &entry_at(*place);
}

std::vector<std::string> WeightFiles::names() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : places_) names.push_back(name);
  return names;
}

std::string_view WeightFiles::bytes(std::string_view name) const {
  const Place& place = place_of(name);
  return files_[place.file].bytes(entry_at(place));
}

void WeightFiles::drop(std::string_view name) const {
  const Place& place = place_of(name);
  files_[place.file].drop(entry_at(place));
}

std::string WeightFiles::where(std::string_view name) const {
  const Place* place = look_up(name);
  return str((place == nullptr ? origin_ : files_[place->file].path()).string(), ": tensor ", name);
}

const WeightFiles::Place& WeightFiles::place_of(std::string_view name) const {
  const Place* place = look_up(name);
  if (place == nullptr) throw UsageError(str(where(name), " is missing", nearest_hint(name, names())));
  return *place;
}

}  // namespace kedge
