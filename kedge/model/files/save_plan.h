#pragma once
// Which files a saved model has, and which of its tensors are in them. Independent of weights.
#include <optional>
#include <string>
#include <vector>

#include "kedge/model/files/model_files.h"
#include "kedge/model/files/safetensors.h"
#include "kedge/model/spec/parameter_layout.h"

namespace kedge {

inline constexpr const char* kIndexFile = "model.safetensors.index.json";

struct SavedFile {
  std::string name;
  std::vector<WeightSlice> slices;
  std::vector<TensorEntry> entries;  // of the slices, without their places
};

struct SavePlan {
  WeightType type = WeightType::f32;
  std::vector<SavedFile> files;
  std::optional<std::string> index;  // what the index file holds; none for one file
};

[[nodiscard]] SavePlan plan_save(const ModelConfig& config, const ModelParameters& places, const SaveOptions& options);

// The companions, and last config.json: a folder without it is not a model.
struct SavedConfig {
  const ModelConfig& config;
  const HeadOptions& head;
  const ModelParameters& places;
  WeightType type;
};
void finish_model_folder(const SavedConfig& saved, const Path& folder, const SaveOptions& options);
void warn_of_score_bias(const Path& folder);  // where it is not 0

}  // namespace kedge
