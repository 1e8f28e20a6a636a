#pragma once
// The loss of the policy-gradient family, put together from the terms of policy_losses.h: the ratio, what of it counts, KL and entropy.
#include <optional>
#include <string>

#include "kedge/algo/online/algorithm.h"
#include "kedge/algo/online/policy_loss_config.h"

namespace kedge {

struct PolicyLossOptions {
  RatioKind ratio = RatioKind::clip;
  RatioLevel level = RatioLevel::token;
  double clip_min = 0.2, clip_max = 0.2;
  std::optional<double> clip_c = {};
  double cispo_max = 5;
  LossKlConfig kl = {};
  double entropy_bonus = 0;
  std::string prefix = "";  // of the names of its metrics: "ppo_" for ppo_ratio
  bool reports = true;      // ratios and KL, over all tokens
};

[[nodiscard]] PassLoss policy_loss(const PassTokens& tokens, const PolicyLossOptions& options);

[[nodiscard]] TokenObjective policy_objective(PolicyLossOptions options, LossNorm norm);

}  // namespace kedge
