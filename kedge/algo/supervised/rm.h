#pragma once
// Reward models: a number for a text. Trained on pairs of a better and a worse answer, on attribute values, or on pairs with a strength.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kedge/algo/supervised/reward_losses.h"
#include "kedge/algo/supervised/supervised.h"
#include "kedge/data/sets/preference_dataset.h"
#include "kedge/model/score_head.h"
#include "kedge/reward/reward_model_type.h"
#include "kedge/train/checkpoint/run_folder.h"
#include "kedge/train/training_config.h"

namespace kedge {

// Keys of `model.regression`.
struct RegressionConfig {
  int64_t num_attributes = 1;
  PreferenceLoss loss_func = PreferenceLoss::regression;
  double loss_mask_val = -100;
  bool load_rm_head_weights = false;

  void fields(auto&& field) {
    field("num_attributes", num_attributes, "values predicted per text", at_least(1));
    field("loss_func", loss_func,
          "regression: squared error to the labels; the others: rows 2i and 2i+1 are responses A and B, and the first label ranks them "
          "from -3 (A is better) to 3 (B is better)");
    field("loss_mask_val", loss_mask_val, "labels with this value are left out of the loss");
    field("load_rm_head_weights", load_rm_head_weights, "load the reward head from the folder; false: start with a new head");
    field.ignored({"merge_attributes", "attribute_weights"}, "training uses every attribute; kedge score merges them");
  }
};

// Keys of `trainer.rm`.
struct RmLoopConfig : ShuffledConfig {
  static constexpr const char* kName = "rm";
  static constexpr const char* kHelp = "the training loop";
};

struct RmModelConfig : NetworkConfig {
  int64_t micro_batch_size = 2, global_batch_size = 64;
  RewardModelType reward_model_type = RewardModelType::binary_ranking;
  RegressionConfig regression;
  bool use_avg_pool = false;
  PreferenceConfig data;
  int64_t num_samples = 2;

  RmModelConfig() {
    optim.lr = 9e-6;
    optim.sched.min_lr = 9e-7;
    optim.sched.constant_steps = 0;
  }
  void fields(auto&& field) {
    NetworkConfig::fields(field);
    field("micro_batch_size", micro_batch_size, "rows (pairs) per forward pass", at_least(1));
    field("global_batch_size", global_batch_size, "rows (pairs) per step", at_least(1));
    field("reward_model_type", reward_model_type,
          "binary_ranking: pairs of a better and a worse response; regression: texts with attribute values");
    field("regression", regression, "settings of regression models");
    field("use_avg_pool", use_avg_pool, "compute the reward from the mean of all hidden states; false: from the last token's");
    field("data", data, "the training and validation data");
    field("num_samples", num_samples, "validation texts logged with their rewards; 0: none", at_least(0));
    field.alias("loss_func", "regression.loss_func");
    field.alias("loss_mask_val", "regression.loss_mask_val");
    field.ignored("force_head_dtype", "the head computes in fp32");
    field.ignored("forward_micro_batch_size", "validation uses micro_batch_size");
    field.refused("output_sequence", "a reward model returns one reward per row; kedge serve critic returns a value per token",
                  {"false", "False"});
    field.ignored("share_embeddings_and_output_weights", "a reward model has no output embedding");
    field.refused("reward_standardization", "training uses raw rewards; give the measured mean and std to kedge score or a server");
  }
};

struct RmConfig {
  TrainerConfig<RmLoopConfig> trainer;
  RunConfig exp_manager;
  PretrainedConfig pretrained_checkpoint;
  RmModelConfig model;

  RmConfig() {
    exp_manager.name = "rm";
    exp_manager.metrics.console_keys = {"train/loss", "train/acc", "validation/loss", "validation/acc"};
    exp_manager.checkpoint_callback_params.filename = "kedge_rm--{val_loss:.3f}-{step}-{consumed_samples}-{epoch}";
  }
  void fields(auto&& field) {
    field("trainer", trainer, "device, precision and length of training");
    field("exp_manager", exp_manager, "the run's folder, checkpoints and logs; null: keep_folder=false",
          null_means("keep_folder", "false"));
    field("pretrained_checkpoint", pretrained_checkpoint, "the model to start from");
    field("model", model, "the network, its data and its optimizer");
    field.alias("model.restore_from_path", "pretrained_checkpoint.restore_from_path");
  }
};

// Settings that contradict each other are a UsageError.
void check_rm_config(const RmConfig& config);

// Opens and reads the data, before there are weights.
[[nodiscard]] SupervisedTask make_rm_task(const RmModelConfig& config, const TaskModel& model);

// Numbers of a ranking, from sums over pairs: of the losses weighted by pairs, of pairs in the right order, of pairs, of the chosen
// rewards, of the rejected, and of all rewards' squares.
[[nodiscard]] Metrics ranking_metrics(std::span<const double> sums);

}  // namespace kedge
