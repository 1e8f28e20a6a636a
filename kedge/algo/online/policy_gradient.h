#pragma once
// The policy-gradient family without a critic: every prompt is answered several times, and an answer becomes more likely the better it is
// than others. What it is compared with, the ratio, the averaging and the KL are options; kedge reinforce, grpo and rloo are this algorithm
// with defaults of their own.
#include <memory>
#include <string>

#include "kedge/algo/online/advantage.h"
#include "kedge/algo/online/online_trainer.h"
#include "kedge/algo/online/policy_loss_config.h"

namespace kedge {

// Keys of `trainer.A`.
struct PolicyGradientLoop : OnlineLoopConfig, KlConfig, ClipConfig, LossKlConfig, RolloutCorrectionConfig {
  int64_t num_rollouts_per_prompt = 4;
  KlReduce kl_reduce = KlReduce::mean;
  Baseline baseline = Baseline::rloo;
  RatioKind ratio = RatioKind::none;
  RatioLevel sequence_level_importance_ratios = RatioLevel::token;
  double cispo_ratio_max = 5;
  Unfinished unfinished = Unfinished::drop;
  LossNorm loss_norm = LossNorm::reference;
  bool use_dynamic_sampling = false;
  int64_t dynamic_sampling_max_batches = 10;
  int64_t epochs = 1;

  [[nodiscard]] bool wants_reference() const { return initial_policy_kl_penalty > 0 || reference_policy_kl_penalty > 0; }
  // Of the KL that is logged, and subtracted from rewards.
  [[nodiscard]] KlEstimator logged_kl() const { return initial_policy_kl_penalty > 0 ? estimator() : reference_policy_kl_type; }

 protected:
  // The keys that differ: the epochs' name, and what TRL's beta stands for.
  void fields_of(auto&& field, const char* epochs_key, const char* beta) {
    OnlineLoopConfig::fields(field);
    field("num_rollouts_per_prompt", num_rollouts_per_prompt, "responses sampled per prompt", at_least(1));
    KlConfig::fields(field);
    field("kl_reduce", kl_reduce, "KL penalty of a response: mean or sum over its tokens; baseline=batch_norm: always the sum");
    LossKlConfig::fields(field);
    field("baseline", baseline,
          "what is subtracted from a reward: mean of the prompt's other responses (rloo), of all its responses (group_mean), the same and "
          "then divided by their standard deviation (group_norm) or by that of the whole step (group_mean_batch_std), mean of the step "
          "(batch_mean), or nothing (none). batch_norm: rewards and KL per token, summed up to the end of the response, normalized to mean "
          "0 and standard deviation 1 over all tokens of the step");
    field("ratio", ratio,
          "none: plain REINFORCE. clip: PPO's clipped ratio to the policy before the step's updates. cispo: that ratio, at most "
          "cispo_ratio_max, as a weight without gradient");
    ClipConfig::fields(field);
    field("sequence_level_importance_ratios", sequence_level_importance_ratios,
          "the ratio of a token is that of its response: the geometric mean over its tokens (true, GSPO), or their product (product)");
    field("cispo_ratio_max", cispo_ratio_max, "the largest ratio of cispo", above(0));
    field("unfinished", unfinished,
          "responses cut off at max_length: excluded from baseline and loss (drop), or treated like others (keep)");
    field("loss_norm", loss_norm, kLossNormHelp);
    RolloutCorrectionConfig::fields(field);
    field("use_dynamic_sampling", use_dynamic_sampling,
          "drop prompts whose responses all have the same reward, and answer further prompts until the step is full");
    field("dynamic_sampling_max_batches", dynamic_sampling_max_batches,
          "batches of num_rollout_samples prompts that a step may take for that; if they do not suffice, some of the dropped ones fill it",
          at_least(1));
    field(epochs_key, epochs, "passes over the responses of a step", at_least(1));
    field.refused("discount_factor", "a response has a single reward, so there is nothing to discount", {"1", "1.0"});
    for (const char* word : {"num_generations_per_prompt", "num_generations", "rollout.n"}) field.alias(word, "num_rollouts_per_prompt");
    for (const char* word : {"token_level_loss", "loss_type", "loss_agg_mode"}) field.alias(word, "loss_norm");
    field.alias("importance_sampling_level", "sequence_level_importance_ratios");
    field.alias("filter_groups.enable", "use_dynamic_sampling");
    field.alias("num_iterations", epochs_key);
    field.alias("beta", beta);
  }
};

// A complete configuration.
template <typename Loop>
struct PolicyGradientConfig : OnlineRunConfig<Loop, RolloutConfig, RewardedConfig> {
  using Base = OnlineRunConfig<Loop, RolloutConfig, RewardedConfig>;

  PolicyGradientConfig() {
    this->exp_manager = online_run(Loop::kName, "rewards", {"train_rollouts/init_policy_kl", "train_rollouts/generation_length"});
    Loop::set_defaults(this->model);
  }
  void fields(auto&& field) {
    Base::fields(field);
    field.alias(Base::in_model("ratio_eps"), Base::in_trainer("ratio_eps"));
  }
};

// What the settings of the family add to those of all algorithms. UsageError for invalid values.
[[nodiscard]] OnlineSettings policy_gradient_settings(OnlineSettings settings, const PolicyGradientLoop& loop);
template <typename Loop>
[[nodiscard]] OnlineSettings settings_of(const PolicyGradientConfig<Loop>& config) {
  OnlineSettings settings = shared_settings(config);
  settings.names_reward = config.names_reward();
  return policy_gradient_settings(std::move(settings), config.trainer.loop);
}

// `name` is the command's: hints name keys with it.
[[nodiscard]] std::unique_ptr<Algorithm> make_policy_gradient(const PolicyGradientLoop& loop, double entropy_bonus, std::string name);
template <typename Loop>
[[nodiscard]] std::unique_ptr<Algorithm> make_algorithm(const PolicyGradientConfig<Loop>& config) {
  return make_policy_gradient(config.trainer.loop, config.model.rollouts.entropy_bonus, Loop::kName);
}

}  // namespace kedge
