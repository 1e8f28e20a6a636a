#pragma once
// The settings of training on preferences without rollouts: DPO on pairs of a better and a worse response, KTO on responses that are
// marked good or bad. Keys are NeMo-Aligner's; TRL's names work too.
#include <optional>
#include <string>

#include "kedge/algo/supervised/preference_losses.h"
#include "kedge/algo/supervised/reference_logprobs.h"
#include "kedge/algo/supervised/supervised.h"
#include "kedge/data/sets/preference_dataset.h"
#include "kedge/train/checkpoint/run_folder.h"
#include "kedge/train/training_config.h"

namespace kedge {

// Keys that `model.dpo` and `model.kto` share.
struct PreferenceTuningConfig {
  double ref_policy_kl_penalty = 0.2;
  std::optional<bool> preference_average_log_probs, sft_average_log_probs;
  double preference_loss_weight = 1, sft_loss_weight = 0;
  ReferenceKeeping reference_cache = ReferenceKeeping::memory;
  std::optional<std::string> reference_cache_folder;

  void fields(auto&& field) {
    field("ref_policy_kl_penalty", ref_policy_kl_penalty, "beta: how strongly the policy is held to the reference", at_least(0));
    field("preference_average_log_probs", preference_average_log_probs,
          "in the preference loss, mean of a response's log-probabilities instead of their sum; null: the mean for ipo, else the sum");
    field("sft_average_log_probs", sft_average_log_probs, "the same in the SFT loss; null: as in the preference loss",
          follows("${.preference_average_log_probs}"));
    field("preference_loss_weight", preference_loss_weight, "weight of the preference loss", at_least(0));
    field("sft_loss_weight", sft_loss_weight, "weight of the SFT loss on good responses", at_least(0));
    field("reference_cache", reference_cache,
          "log-probabilities of the reference: computed once and kept in memory or on disk, or with a copy of the weights for every batch "
          "(none)");
    field("reference_cache_folder", reference_cache_folder,
          "folder of reference_cache=disk, which several runs may share; null: reference_cache in the run's folder");
    field.alias("beta", "ref_policy_kl_penalty");
    field.alias("average_log_probs", "preference_average_log_probs");
    field.alias("preference_avg_log_probs", "preference_average_log_probs");
    field.ignored("log_prob_forward_micro_batch_size", "reference log-probabilities use model.micro_batch_size");
  }
};

// Keys of `model.dpo`.
struct DpoTuningConfig : PreferenceTuningConfig {
  static constexpr const char* kName = "dpo";
  DpoLoss preference_loss = DpoLoss::dpo;
  double gt_reward_scale = 1, label_smoothing = 0;

  void fields(auto&& field) {
    PreferenceTuningConfig::fields(field);
    field("preference_loss", preference_loss,
          "dpo: -log sigmoid of the margin; ipo: squared distance from 1 / (2 beta); hinge; rpo_*: distance from the gap of given rewards");
    field("gt_reward_scale", gt_reward_scale, "factor of the given rewards in the rpo losses");
    field("label_smoothing", label_smoothing, "of preference_loss=dpo: the probability that a pair is the wrong way round", at_least(0),
          below(0.5));
    field.alias("loss_type", "preference_loss");
  }
};

// Keys of `model.kto`.
struct KtoTuningConfig : PreferenceTuningConfig {
  static constexpr const char* kName = "kto";
  double desirable_loss_weight = 1, undesirable_loss_weight = 1;

  void fields(auto&& field) {
    PreferenceTuningConfig::fields(field);
    field("desirable_loss_weight", desirable_loss_weight, "weight of responses marked good", at_least(0));
    field("undesirable_loss_weight", undesirable_loss_weight, "weight of responses marked bad", at_least(0));
    field.alias("desirable_weight", "desirable_loss_weight");
    field.alias("undesirable_weight", "undesirable_loss_weight");
  }
};

struct PreferenceModelConfig : NetworkConfig {
  int64_t micro_batch_size = 1, global_batch_size = 64;
  PreferenceConfig data;

  PreferenceModelConfig() {
    optim.sched.min_lr = 9e-7;
    optim.sched.constant_steps = 0;
  }
  void fields(auto&& field) {
    NetworkConfig::fields(field);
    field("micro_batch_size", micro_batch_size, "rows per forward pass", at_least(1));
    field("global_batch_size", global_batch_size, "rows per step", at_least(1));
    field("data", data, "the training and validation data");
  }
};

// A run whose loss has the settings `Tuning`; its loop and its loss have sections of that name.
template <typename Tuning>
struct PreferenceRunConfig {
  struct Loop : ShuffledConfig {
    static constexpr const char* kName = Tuning::kName;
    static constexpr const char* kHelp = "the training loop";
  };
  struct Model : PreferenceModelConfig {
    Tuning loss;

    void fields(auto&& field) {
      PreferenceModelConfig::fields(field);
      field(Tuning::kName, loss, "the loss");
    }
  };
  TrainerConfig<Loop> trainer;
  RunConfig exp_manager;
  PretrainedConfig pretrained_checkpoint;
  Model model;

  PreferenceRunConfig() {
    exp_manager.name = Tuning::kName;
    exp_manager.metrics.console_keys = {"train/loss", "train/rewards/margins", "validation/loss", "validation/rewards/margins"};
    exp_manager.checkpoint_callback_params.filename = str("kedge_", Tuning::kName, "--{val_loss:.3f}-{step}-{consumed_samples}-{epoch}");
  }
  void fields(auto&& field) {
    field("trainer", trainer, "device, precision and length of training");
    field("exp_manager", exp_manager, "the run's folder, checkpoints and logs; null: keep_folder=false",
          null_means("keep_folder", "false"));
    field("pretrained_checkpoint", pretrained_checkpoint, "the model to start from, which is also the reference");
    field("model", model, "the network, its data, its loss and its optimizer");
    field.ignored("precision", "trainer.precision applies");
  }
};

using DpoConfig = PreferenceRunConfig<DpoTuningConfig>;
using KtoConfig = PreferenceRunConfig<KtoTuningConfig>;
using DpoModelConfig = DpoConfig::Model;
using KtoModelConfig = KtoConfig::Model;

}  // namespace kedge
