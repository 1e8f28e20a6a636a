#pragma once
// One answer of a step with all its results: what is trained on, logged and recorded. Independent of tensors.
#include <memory>
#include <optional>
#include <vector>

#include "kedge/reward/reward.h"
#include "kedge/reward/rollout.h"

namespace kedge {

struct RolloutRow {
  std::shared_ptr<const Rollout> rollout = nullptr;
  int64_t slot = 0;  // of its prompt in the batch: equal prompts of one batch are kept separate
  RowReward reward = {};
  // Of the answer's ids, by the policy before the step's updates and by the reference policy. Empty: not known.
  std::vector<float> logprobs = {}, reference = {};
  // Of the policy, mean over the answer's tokens, nats. Set if training's own passes computed the `logprobs`; otherwise they are
  // the engine's.
  std::optional<double> entropy = {};
  double kl_mean = 0, kl_sum = 0;  // from the reference, over the answer's tokens; 0 if there is no `reference`
  double reward_with_kl = 0;       // the reward less the penalty
  double baseline = 0, advantage = 0;
  // Of the answer's ids, with a critic: its value before each of them, the advantage of each, and the critic's target.
  // Empty without one: then every id has the answer's `advantage`.
  std::vector<float> values = {}, advantages = {}, returns = {};
  // Weights of the answer's ids in the loss, for a gap between generation and training. Empty: all 1.
  std::vector<float> correction = {};
  bool trains = false;  // the policy is trained on it
};

// All of a step or a validation, of every rank: by slot, then by sample.
using RolloutRows = std::vector<RolloutRow>;

}  // namespace kedge
