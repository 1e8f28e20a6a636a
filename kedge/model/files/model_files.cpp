#include "kedge/model/files/model_files.h"

#include <algorithm>
#include <set>
#include <utility>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/model/files/save_plan.h"
#include "kedge/model/files/tensor_bytes.h"
#include "kedge/model/files/weight_check.h"

namespace kedge {
namespace {

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
  std::vector<int64_t> shape = parameters.whole_specs()[static_cast<size_t>(slice.parameter)].shape;
  shape[0] = slice.rows;
  const Tensor rows = at::empty(shape, at::kFloat);
  read_tensor(source, rows);
  parameters.write_rows(slice.parameter, slice.row, rows);
}

// Beside the embedding a folder may hold the head that config.json ties to it. One that was trained apart must not be lost.
void check_tied_head(const WeightFiles& files, const std::string& embedding) {
  const TensorEntry* head = files.find("lm_head.weight");
  if (head == nullptr || head == files.find(embedding)) return;
  check(files.bytes(head->name) == files.bytes(embedding), files.where(head->name), " differs from ", embedding,
        ", but config.json ties the two; set tie_word_embeddings to false in config.json to keep both");
  files.drop(head->name);
}

void load_slices(Model& model, const WeightFiles& files, const Path& folder, bool fresh_head) {
  const WeightCheck checked =
      check_weights(files, parameter_layout(model.config(), model.places()), {.head = model.head().kind, .fresh_head = fresh_head});
  check(checked.fits(), checked.text(folder.string(), model.config()));
  std::vector<std::string> not_finite;
  for (const auto& [slice, name] : checked.found) {
    const TensorSource source{files.bytes(name), weight_type(*files.find(name), files.where(name)), slice.shape, slice.transposed};
    if (has_non_finite(source)) not_finite.push_back(name);
    if (slice.parameter == model.places().embedding && slice.parameter == model.places().head) check_tied_head(files, name);
    read_rows(source, model.parameters(), slice);
    files.drop(name);
  }
  if (!not_finite.empty())
    log_warn_of_job(folder.string(), ": ", not_finite.size(), " tensors hold NaN or infinities, the first is ", not_finite.front());
}

void write_file(const Model& model, const SavedFile& planned, WeightType type, const Path& path) {
  SafetensorsWriter writer(path, planned.entries);
  for (const WeightSlice& slice : planned.slices) {
    const Tensor rows = model.parameters().master(slice.parameter).narrow(0, slice.row, slice.rows);
    write_tensor(slice.transposed ? rows.t() : rows, type, [&](std::string_view bytes) { writer.write(bytes); });
  }
  writer.finish();
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

// What an earlier save left behind is removed: a single file would take precedence over an index.
void write_weights(const Model& model, const SavePlan& plan, const Path& folder) {
  std::set<std::string> names;
  for (const SavedFile& planned : plan.files) {
    write_file(model, planned, plan.type, folder / planned.name);
    names.insert(planned.name);
  }
  if (plan.index) {
    write_atomic(folder / kIndexFile, *plan.index);
    std::filesystem::remove(folder / "model.safetensors");
  } else {
    std::filesystem::remove(folder / kIndexFile);
  }
  remove_shards_but(folder, names);
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
  const SavePlan plan = plan_save(model.config(), model.places(), options);
  write_weights(model, plan, folder);
  const int bias = model.places().score_bias;
  if (bias >= 0 && model.parameters().master(bias).count_nonzero().item<int64_t>() > 0) warn_of_score_bias(folder);
  finish_model_folder({model.config(), model.head(), model.places(), plan.type}, folder, options);
}

}  // namespace kedge
