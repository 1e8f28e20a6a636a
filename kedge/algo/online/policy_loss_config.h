#pragma once
// The sections of a configuration that decide how the policy learns from a token: how far its ratio may go, the KL in the loss, the
// correction of a gap between generation and training.
#include <array>
#include <optional>
#include <vector>

#include "kedge/algo/online/advantage.h"
#include "kedge/config/config_schema.h"

namespace kedge {

// What of the ratio enters the loss: nothing (plain REINFORCE), PPO's clipped ratio, or CISPO's weight, which has an upper limit and no
// gradient.
enum class RatioKind { none, clip, cispo };
constexpr auto enum_names(RatioKind) {
  return std::array<EnumName<RatioKind>, 3>{{{"none", RatioKind::none}, {"clip", RatioKind::clip}, {"cispo", RatioKind::cispo}}};
}

// What a token's ratio is of: itself; its response, as the geometric mean over tokens (GSPO); its response, as their product.
enum class RatioLevel { token, sequence, product };
constexpr auto enum_names(RatioLevel) {
  return std::array<EnumName<RatioLevel>, 3>{
      {{"false", RatioLevel::token}, {"true", RatioLevel::sequence}, {"product", RatioLevel::product}}};
}
constexpr auto other_names(RatioLevel) {
  return std::array<EnumName<RatioLevel>, 4>{
      {{"token", RatioLevel::token}, {"sequence", RatioLevel::sequence}, {"False", RatioLevel::token}, {"True", RatioLevel::sequence}}};
}

// Limits of the ratio: part of `trainer.reinforce`, `trainer.grpo`, `trainer.rloo` and `model.ppo`.
struct ClipConfig {
  double ratio_eps = 0.2;
  std::optional<double> ratio_clip_min = {}, ratio_clip_max = {}, ratio_clip_c = {};

  [[nodiscard]] double clip_min() const { return ratio_clip_min.value_or(ratio_eps); }
  [[nodiscard]] double clip_max() const { return ratio_clip_max.value_or(ratio_eps); }
  void fields(auto&& field) {
    field("ratio_eps", ratio_eps, "clip range of the probability ratio around 1", above(0));
    field("ratio_clip_min", ratio_clip_min, "the same below 1: ratios are clipped at 1 - this; null: ratio_eps", above(0));
    field("ratio_clip_max", ratio_clip_max, "the same above 1: ratios are clipped at 1 + this; null: ratio_eps", above(0));
    field("ratio_clip_c", ratio_clip_c, "dual clip: where the advantage is negative, the ratio counts as at most this; null: no such limit",
          above(1));
    field.alias("epsilon", "ratio_eps");
    field.alias("epsilon_high", "ratio_clip_max");
    field.alias("delta", "ratio_clip_c");
  }
};

// A penalty for leaving the reference that is part of the loss: part of `trainer.A`.
struct LossKlConfig {
  double reference_policy_kl_penalty = 0;
  KlEstimator reference_policy_kl_type = KlEstimator::k3;
  bool kl_ratio_correction = true;

  void fields(auto&& field) {
    field("reference_policy_kl_penalty", reference_policy_kl_penalty,
          "weight of the KL from the reference policy in the loss; 0: none. initial_policy_kl_penalty takes it from the reward instead",
          at_least(0));
    field("reference_policy_kl_type", reference_policy_kl_type, "its estimator per token, as in kl_estimator");
    field("kl_ratio_correction", kl_ratio_correction,
          "multiply that KL by the probability ratio, with its gradient, which makes the gradient of k3 unbiased");
    field.alias("use_bias_correction_kl", "kl_ratio_correction");
  }
};

// What is done about tokens whose probabilities in generation and in training differ; o: training's log-prob before the step's updates,
// e: generation's.
enum class RolloutCorrection { none, tis, icepop, sequence_mask };
constexpr auto enum_names(RolloutCorrection) {
  return std::array<EnumName<RolloutCorrection>, 4>{{{"none", RolloutCorrection::none},
                                                     {"tis", RolloutCorrection::tis},
                                                     {"icepop", RolloutCorrection::icepop},
                                                     {"sequence_mask", RolloutCorrection::sequence_mask}}};
}
constexpr auto other_names(RolloutCorrection) {
  return std::array<EnumName<RolloutCorrection>, 3>{{{"token_truncate", RolloutCorrection::tis},
                                                     {"token_mask", RolloutCorrection::icepop},
                                                     {"seq-mask-tis", RolloutCorrection::sequence_mask}}};
}

// Part of `trainer.A`.
struct RolloutCorrectionConfig {
  RolloutCorrection rollout_correction = RolloutCorrection::none;
  double rollout_correction_max = 2;
  std::vector<double> rollout_correction_range = {0.5, 5};

  void fields(auto&& field) {
    field("rollout_correction", rollout_correction,
          "weights for tokens that generation and training give other probabilities: the ratio of the two, at most rollout_correction_max "
          "(tis); 0 for tokens outside rollout_correction_range (icepop); 0 for responses whose product of ratios is outside it "
          "(sequence_mask)");
    field("rollout_correction_max", rollout_correction_max, "the largest weight of tis", above(0));
    field("rollout_correction_range", rollout_correction_range, "lower and upper limit of icepop and sequence_mask", above(0));
    field.alias("truncated_importance_sampling_type", "rollout_correction");
    field.alias("vllm_importance_sampling_mode", "rollout_correction");
  }
};

}  // namespace kedge
