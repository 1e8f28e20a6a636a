#include "kedge/model/files/save_plan.h"

#include <algorithm>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/model/files/tensor_bytes.h"

namespace kedge {
namespace {

constexpr const char* kBiasKey = "kedge_score_bias";  // in config.json: the folder holds a score.bias, which transformers does not read

int64_t bytes_of(const WeightSlice& slice, WeightType type) {
  auto bytes = static_cast<int64_t>(bytes_of(type));
  for (const int64_t extent : slice.shape) bytes *= extent;
  return bytes;
}

std::string padded(size_t number) {
  const std::string digits = std::to_string(number);
  return std::string(5 - std::min<size_t>(5, digits.size()), '0') + digits;
}

std::string index_of(const std::vector<SavedFile>& files, WeightType type) {
  Json map, metadata, index;
  int64_t total = 0;
  for (const SavedFile& file : files)
    for (const WeightSlice& slice : file.slices) {
      map.append(slice.name, Json(file.name));
      total += bytes_of(slice, type);
    }
  metadata.set("total_size", total);
  index.set("metadata", metadata);
  index.set("weight_map", map);
  return index.dump(2) + "\n";
}

std::string_view config_name(WeightType type) {
  return type == WeightType::f32 ? "float32" : type == WeightType::bf16 ? "bfloat16" : "float16";
}

}  // namespace

SavePlan plan_save(const ModelConfig& config, const ModelParameters& places, const SaveOptions& options) {
  const std::string where = "config.json: dtype";
  SavePlan plan;
  plan.type = weight_type_of(options.dtype.value_or(parse_dtype(config.dtype, where)), where);
  plan.files.resize(1);
  int64_t bytes = 0;
  for (WeightSlice& slice : parameter_layout(config, places)) {
    const int64_t more = bytes_of(slice, plan.type);
    if (!plan.files.back().slices.empty() && bytes + more > options.max_shard_bytes) {
      plan.files.emplace_back();
      bytes = 0;
    }
    bytes += more;
    plan.files.back().entries.push_back({slice.name, plan.type, slice.shape});
    plan.files.back().slices.push_back(std::move(slice));
  }
  const size_t count = plan.files.size();
  for (size_t i = 0; i < count; ++i)
    plan.files[i].name = count == 1 ? "model.safetensors" : str("model-", padded(i + 1), "-of-", padded(count), ".safetensors");
  if (count > 1) plan.index = index_of(plan.files, plan.type);
  return plan;
}

void finish_model_folder(const SavedConfig& saved, const Path& folder, const SaveOptions& options) {
  const int64_t num_labels = saved.head.kind == HeadKind::score ? saved.head.num_labels : 0;
  Json config = config_json(saved.config, config_name(saved.type), num_labels);
  if (saved.places.score_bias >= 0) config.set(kBiasKey, true);
  if (options.companions) copy_companions(*options.companions, folder);
  write_atomic(folder / "config.json", config.dump(2) + "\n");
}

void warn_of_score_bias(const Path& folder) {
  log_warn(folder.string(), ": the score head has a bias (score.bias), which transformers does not read");
}

}  // namespace kedge
