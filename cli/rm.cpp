#include "kedge/algo/config_sections.h"
#include "kedge/core/error.h"
#include "kedge/model/model_files.h"

#include "cli/commands.h"
#include "cli/run_session.h"
#include "cli/training_job.h"

namespace kedge::cli {
namespace {

// The network of the folder with its own score head, or with a new one.
std::unique_ptr<Model> load_reward_model(const Path& folder, const StorageOptions& storage, const RmModelConfig& config) {
  const bool keeps_head = config.regression.load_rm_head_weights;
  const auto seed = static_cast<uint64_t>(config.seed);
  auto model = load_model(
      folder, {.storage = storage, .head = HeadKind::score, .new_labels = keeps_head ? 0 : config.regression.num_attributes, .seed = seed});
  check(model->head().num_labels == config.regression.num_attributes, "model.regression.num_attributes: ", config.regression.num_attributes,
        " attributes, but the head of ", folder.string(), " has ", model->head().num_labels);
  if (!keeps_head) model->initialise_head(seed);
  note_pooling(*model, config.use_avg_pool ? Pooling::mean : Pooling::last);
  return model;
}

// What a server wants to be told of the rewards.
void add_standardization(Json& summary, const Metrics& last) {
  const auto mean = last.find("validation/rewards_all_mean"), std = last.find("validation/rewards_all_std");
  if (mean && std) summary.set("reward_standardization", Json::Object{{"mean", *mean}, {"std", *std}});
}

// Runs `use` with the job of this command.
void with_job(const std::function<void(const TrainingJob& job)>& use) {
  RmConfig config;
  RmModelConfig& model = config.model;
  const TrainingJob job{
      .name = "rm",
      .section = describe(config),
      .model_key = "pretrained_checkpoint.restore_from_path",
      .model_path = config.pretrained_checkpoint.restore_from_path,
      .compute = config.trainer,
      .loop = config.trainer.rm,
      .run = config.exp_manager,
      .network = model,
      .check_config = [&] { check_rm_config(config); },
      .limit_length = [&](int64_t longest) { model.data.seq_length = std::min(model.data.seq_length, longest); },
      .batches =
          [&] {
            return SupervisedBatches{model.global_batch_size, model.micro_batch_size, config.trainer.rm.train_random_sampler,
                                     static_cast<uint64_t>(model.seed), false};
          },
      .head =
          [&] {
            return HeadOptions{HeadKind::score, model.regression.num_attributes, false};
          },
      .data_files = [&] { return data_files(model.data, "model.data"); },
      .load_model = [&](const Path& folder, const StorageOptions& storage) { return load_reward_model(folder, storage, model); },
      .make_task = [&](const std::unique_ptr<Model>& network, const Tokenizer& tokenizer,
                       const Path& folder) { return make_rm_task(model, network, tokenizer, folder); },
      .cache_bytes = {},
      .add_summary = add_standardization};
  use(job);
}

}  // namespace

std::string rm_flags() { return training_flags("rm"); }

int run_rm(const Arguments& arguments) {
  int code = kExitOk;
  with_job([&](const TrainingJob& job) { code = run_training(job, arguments); });
  return code;
}

PlanReport plan_rm(const PlanArguments& arguments) {
  PlanReport report;
  with_job([&](const TrainingJob& job) { report = plan_training(job, arguments); });
  return report;
}

}  // namespace kedge::cli
