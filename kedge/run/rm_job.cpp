#include "kedge/run/rm_job.h"

#include <algorithm>

#include "kedge/algo/config_sections.h"
#include "kedge/core/error.h"
#include "kedge/model/files/model_files.h"

namespace kedge {

Section RmJob::section() { return describe(config_); }

SupervisedSections RmJob::sections() const {
  return {.name = "rm",
          .model_key = "pretrained_checkpoint.restore_from_path",
          .model_path = config_.pretrained_checkpoint.restore_from_path,
          .compute = config_.trainer,
          .loop = config_.trainer.loop,
          .run = config_.exp_manager,
          .network = config_.model};
}

void RmJob::check_config() const { check_rm_config(config_); }

void RmJob::limit_length(int64_t max_positions) { config_.model.data.seq_length = std::min(config_.model.data.seq_length, max_positions); }

SupervisedBatches RmJob::batches() const {
  const RmModelConfig& model = config_.model;
  return {model.global_batch_size, model.micro_batch_size, config_.trainer.loop.train_random_sampler, static_cast<uint64_t>(model.seed),
          false};
}

HeadOptions RmJob::head() const { return {HeadKind::score, config_.model.regression.num_attributes, false}; }

std::vector<Path> RmJob::files() const { return data_files(config_.model.data, "model.data"); }

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

SupervisedTask RmJob::make_task(const std::unique_ptr<Model>& model, const Tokenizer& tokenizer, const Path& folder) {
  return make_rm_task(config_.model, model, tokenizer, folder);
}

// What a reward server needs to standardise its rewards.
void RmJob::add_summary(Json& summary, const Metrics& last) const {
  const auto mean = last.find("validation/rewards_all_mean"), std = last.find("validation/rewards_all_std");
  if (mean && std) summary.set("reward_standardization", Json::Object{{"mean", *mean}, {"std", *std}});
}

}  // namespace kedge
