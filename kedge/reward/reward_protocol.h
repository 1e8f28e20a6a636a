#pragma once
// The lines that are exchanged with a reward command: rollouts as JSON, and its replies; docs/rewards.md has the rules. Independent of
// processes.
#include <string>
#include <string_view>
#include <vector>

#include "kedge/reward/reward.h"

namespace kedge {

// Identifies one exchange.
struct RewardExchange {
  int64_t id = 0;
  size_t num_rows = 1;
  bool batched = false;  // {"id", "rollouts": [...]} and {"id", "rewards": [...]}, else one rollout and {"id", "reward"}
};

// One line, with its line end. As many rollouts as the exchange has rows.
[[nodiscard]] std::string reward_request(const RewardExchange& exchange, const Rollouts& rollouts);

// One for each row of the exchange; `line` has no line end. What does not follow the rules is a UsageError that states what was expected.
[[nodiscard]] std::vector<RowReward> parse_reward_reply(std::string_view line, const RewardExchange& exchange);

}  // namespace kedge
