#pragma once
// Supervised fine-tuning: the network learns to give the answers of prompt-response rows or conversations.
#include <memory>
#include <string>

#include "kedge/algo/supervised/supervised.h"
#include "kedge/data/sets/sft_config.h"
#include "kedge/train/checkpoint/run_folder.h"
#include "kedge/train/training_config.h"

namespace kedge {

// Keys of `trainer.sft`.
struct SftLoopConfig : SupervisedConfig {
  static constexpr const char* kName = "sft";
  static constexpr const char* kHelp = "the training loop";
};

struct SftModelConfig : NetworkConfig {
  std::string restore_from_path;
  SftDataConfig data;
  int64_t num_samples = 2, sample_tokens = 64;

  SftModelConfig() {
    optim.lr = 3e-5;
    optim.weight_decay = 0.01;
    optim.sched.min_lr = 9e-7;
    optim.sched.constant_steps = 0;
  }
  void fields(auto&& field) {
    field("restore_from_path", restore_from_path, "the model folder to start from, or Org/Name in the Hugging Face cache", required());
    NetworkConfig::fields(field);
    field("data", data, "the training and validation data");
    field("num_samples", num_samples, "sample responses logged at every validation; 0: none", at_least(0));
    field("sample_tokens", sample_tokens, "maximum length of those responses", at_least(1), unit("tokens"));
    field.ignored("answer_only_loss", "the loss always covers responses only");
    for (const char* key : {"global_batch_size", "micro_batch_size"}) field.ignored(key, str("model.data.train_ds.", key, " applies"));
    field.ignored("steerlm2", "this trainer has no such loss");
  }
};

struct SftConfig {
  TrainerConfig<SftLoopConfig> trainer;
  RunConfig exp_manager;
  SftModelConfig model;

  SftConfig() {
    exp_manager.name = "sft";
    exp_manager.metrics.console_keys = {"train/loss", "validation/loss", "train/lr", "timers/tokens_per_s"};
    exp_manager.checkpoint_callback_params.save_top_k = 5;
    exp_manager.checkpoint_callback_params.filename = "kedge_sft--{val_loss:.3f}-{step}-{consumed_samples}-{epoch}";
  }
  void fields(auto&& field) {
    field("trainer", trainer, "device, precision and length of training");
    field("exp_manager", exp_manager, "the run's folder, checkpoints and logs; null: keep_folder=false",
          null_means("keep_folder", "false"));
    field("model", model, "the network, its data and its optimizer");
    field.ignored("name", "exp_manager.name names the run");
  }
};

// Opens and reads the data, before there are weights.
[[nodiscard]] SupervisedTask make_sft_task(const SftModelConfig& config, const TaskModel& model);

}  // namespace kedge
