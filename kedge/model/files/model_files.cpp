#include "kedge/model/files/model_files.h"

#include <algorithm>
#include <set>
#include <utility>

#include "kedge/core/autograd.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/model/files/tensor_bytes.h"
#include "kedge/model/files/weight_check.h"

namespace kedge {
namespace {

constexpr const char* kBiasKey = "kedge_score_bias";  // in config.json: the folder holds a score.bias, which transformers does not read

HeadOptions head_for(const ModelConfig& config, const WeightFiles& files, const Path& folder, const LoadOptions& options) {
  if (options.head == HeadKind::language) {
    check(config.num_labels == 0, folder.string(), ": a score model (", config.num_labels, " labels) where a language model is expected");
    return stored_head(config, files);
  }
  if (has_score_head(config, files)) return stored_head(config, files);
  check(options.new_labels > 0, folder.string(), ": no score head (tensor score.weight) where a reward model or critic is expected");
  return {HeadKind::score, options.new_labels, options.new_bias};
}

// Straight into the weights, or by way of host memory to the parts that this rank holds.
void read_rows(const TensorSource& source, Parameters& parameters, const WeightSlice& slice) {
  if (parameters.has_whole_masters()) return read_tensor(source, parameters.master(slice.parameter).narrow(0, slice.row, slice.rows));
  std::vector<int64_t> shape = parameters.specs()[static_cast<size_t>(slice.parameter)].shape;
  shape[0] = slice.rows;
  const Tensor rows = at::empty(shape, at::kFloat);
  read_tensor(source, rows);
  parameters.write_rows(slice.parameter, slice.row, rows);
}

void load_slices(Model& model, const WeightFiles& files, const Path& folder, bool fresh_head) {
  const WeightCheck checked =
      check_weights(files, parameter_layout(model.config(), model.places()), {.head = model.head().kind, .fresh_head = fresh_head});
  check(checked.fits(), checked.text(folder.string(), model.config()));
  std::vector<std::string> not_finite;
  for (const auto& [slice, name] : checked.found) {
    const TensorSource source{files.bytes(name), weight_type(*files.find(name), files.where(name)), slice.shape, slice.transposed};
    if (has_non_finite(source)) not_finite.push_back(name);
    read_rows(source, model.parameters(), slice);
    files.drop(name);
  }
  if (!not_finite.empty())
    log_warn(folder.string(), ": ", not_finite.size(), " tensors hold NaN or infinities, the first is ", not_finite.front());
}

struct Shard {
  std::vector<const WeightSlice*> slices;
  int64_t bytes = 0;
};

std::vector<Shard> plan_shards(const std::vector<WeightSlice>& table, WeightType type, int64_t max_bytes) {
  std::vector<Shard> shards(1);
  for (const WeightSlice& slice : table) {
    auto bytes = static_cast<int64_t>(bytes_of(type));
    for (const int64_t extent : slice.shape) bytes *= extent;
    if (!shards.back().slices.empty() && shards.back().bytes + bytes > max_bytes) shards.emplace_back();
    shards.back().slices.push_back(&slice);
    shards.back().bytes += bytes;
  }
  return shards;
}

void write_shard(const Model& model, const Shard& shard, WeightType type, const Path& file) {
  std::vector<TensorEntry> entries;
  for (const WeightSlice* slice : shard.slices) entries.push_back({slice->name, type, slice->shape});
  SafetensorsWriter writer(file, std::move(entries));
  for (const WeightSlice* slice : shard.slices) {
    const Tensor rows = model.parameters().master(slice->parameter).narrow(0, slice->row, slice->rows);
    write_tensor(slice->transposed ? rows.t() : rows, type, [&](std::string_view bytes) { writer.write(bytes); });
  }
  writer.finish();
}

std::string padded(size_t number) {
  const std::string digits = std::to_string(number);
  return std::string(5 - std::min<size_t>(5, digits.size()), '0') + digits;
}

// Shards an earlier save left behind.
void remove_shards_but(const Path& folder, const std::set<std::string>& kept) {
  std::vector<Path> stale;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("model-") && name.ends_with(".safetensors") && !kept.contains(name)) stale.push_back(entry.path());
  }
  for (const Path& file : stale) std::filesystem::remove(file);
}

void write_weights(const Model& model, const Path& folder, WeightType type, int64_t max_shard_bytes) {
  const std::vector<WeightSlice> table = parameter_layout(model.config(), model.places());
  const std::vector<Shard> shards = plan_shards(table, type, max_shard_bytes);
  const Path index_file = folder / "model.safetensors.index.json";
  if (shards.size() == 1) {
    write_shard(model, shards[0], type, folder / "model.safetensors");
    std::filesystem::remove(index_file);
    remove_shards_but(folder, {});
    return;
  }
  Json map;
  int64_t total = 0;
  std::set<std::string> names;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = str("model-", padded(i + 1), "-of-", padded(shards.size()), ".safetensors");
    write_shard(model, shards[i], type, folder / name);
    names.insert(name);
    total += shards[i].bytes;
    for (const WeightSlice* slice : shards[i].slices) map.append(slice->name, Json(name));
  }
  Json metadata, index;
  metadata.set("total_size", total);
  index.set("metadata", metadata);
  index.set("weight_map", map);
  write_atomic(index_file, index.dump(2) + "\n");
  std::filesystem::remove(folder / "model.safetensors");  // of an earlier, smaller save: it would take precedence over the index
  remove_shards_but(folder, names);
}

std::string_view config_name(WeightType type) {
  return type == WeightType::f32 ? "float32" : type == WeightType::bf16 ? "bfloat16" : "float16";
}

}  // namespace

std::unique_ptr<Model> load_model(const Path& folder, const LoadOptions& options) {
  const NoGrad no_grad;
  const ModelConfig config = load_model_config(folder);
  const WeightFiles files(folder);
  const HeadOptions head = head_for(config, files, folder, options);
  auto model = std::make_unique<Model>(config, head, options.storage);
  const bool fresh_head = head.kind == HeadKind::score && !has_score_head(config, files);
  if (fresh_head) model->initialise_head(options.seed);
  load_slices(*model, files, folder, fresh_head);
  model->parameters().publish();
  return model;
}

void save_model(const Model& model, const Path& folder, const SaveOptions& options) {
  const NoGrad no_grad;
  make_folder(folder);
  const at::ScalarType dtype = options.dtype.value_or(parse_dtype(model.config().dtype, "config.json: dtype"));
  const WeightType type = weight_type_of(dtype, folder.string());
  write_weights(model, folder, type, options.max_shard_bytes);
  const int64_t num_labels = model.head().kind == HeadKind::score ? model.head().num_labels : 0;
  Json config = config_json(model.config(), config_name(type), num_labels);
  if (model.places().score_bias >= 0) {
    config.set(kBiasKey, true);
    if (model.parameters().master(model.places().score_bias).count_nonzero().item<int64_t>() > 0)
      log_warn(folder.string(), ": the score head has a bias (score.bias), which transformers does not read");
  }
  if (options.companions) copy_companions(*options.companions, folder);
  write_atomic(folder / "config.json", config.dump(2) + "\n");  // last: a folder without it is not a model
}

}  // namespace kedge
