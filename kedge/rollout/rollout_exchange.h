#pragma once
// What one rank found out about answers, told to all others. Every rank makes the same calls; a rank may have nothing to tell. In a group
// of one nothing happens.
#include <cstdint>
#include <span>

#include "kedge/dist/group.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge {

// All ranks' answers, by slot and sample: their rollouts, and nothing else yet. The rows of prompts' files stay where they are.
[[nodiscard]] RolloutRows exchange_rollouts(const Group& group, RolloutRows own);

// An Error where these rows, in that order, are not `num_samples` answers to each of `num_slots` prompts: somebody who is no rank may have
// taken prompts from the work queue.
void check_all_answered(const RolloutRows& rows, int64_t num_slots, int64_t num_samples);

// Of the rows with these places, which no two ranks share, their rewards go to all.
void exchange_rewards(const Group& group, std::span<const int64_t> own, RolloutRows& rows);

// The same of log-probabilities and entropy, and of values.
void exchange_logprobs(const Group& group, std::span<const int64_t> own, RolloutRows& rows);
void exchange_values(const Group& group, std::span<const int64_t> own, RolloutRows& rows);

}  // namespace kedge
