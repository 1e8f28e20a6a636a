#pragma once
// The sources of rewards that need a network or a model: kinds server, http and model of `reward.sources`.
#include <cstdint>
#include <string>

#include "kedge/core/stop.h"
#include "kedge/core/tensor.h"
#include "kedge/reward/model_reward.h"
#include "kedge/reward/reward_set.h"

namespace kedge {

struct RewardSourceParts {
  // Of the policy, to check whether its ids mean the same elsewhere.
  std::string tokenizer_fingerprint = {}, chat_template_fingerprint = {};
  // Where a model in this process computes.
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  StopQuestion stop = {};  // a signal ends the wait for an unreachable server
};

// Tokens of answers that a model in this process computes together; a longer answer alone. All answers of a step may end at once.
inline constexpr int64_t kJudgedTokens = 16384;

// To be given to a RewardSet. A source owns its connections and its model.
[[nodiscard]] RewardSourceMaker model_sources(RewardSourceParts parts);

}  // namespace kedge
