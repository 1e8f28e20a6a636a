#include "kedge/run/rm_job.h"

#include "kedge/core/error.h"
#include "kedge/model/files/model_files.h"

namespace kedge {

void RmJob::check_config() const { check_rm_config(config_); }

HeadOptions RmJob::head() const { return {HeadKind::score, config_.model.regression.num_attributes, false}; }

// The network of the folder with its own score head, or with a new one.
std::unique_ptr<Model> RmJob::load(const Path& folder, const StorageOptions& storage) const {
  const RmModelConfig& config = config_.model;
  const int64_t num_attributes = config.regression.num_attributes;
  const bool keeps_head = config.regression.load_rm_head_weights;
  const auto seed = static_cast<uint64_t>(config.seed);
  auto model =
      load_model(folder, {.storage = storage, .head = HeadKind::score, .new_labels = keeps_head ? 0 : num_attributes, .seed = seed});
  check(model->head().num_labels == num_attributes, "model.regression.num_attributes: ", num_attributes, " attributes, but the head of ",
        folder.string(), " has ", model->head().num_labels);
  if (!keeps_head) model->initialise_head(seed);
  note_pooling(*model, config.use_avg_pool ? Pooling::mean : Pooling::last);
  return model;
}

SupervisedTask RmJob::make_task(const TaskModel& model) { return make_rm_task(config_.model, model); }

// What a reward server needs to standardise its rewards.
void RmJob::add_summary(Json& summary, const Metrics& metrics) const {
  const auto mean = metrics.find("validation/rewards_all_mean"), std = metrics.find("validation/rewards_all_std");
  if (mean && std) summary.set("reward_standardization", Json::Object{{"mean", *mean}, {"std", *std}});
}

}  // namespace kedge
