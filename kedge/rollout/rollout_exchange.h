#pragma once
// Exchanges each rank's results about answers with all others. Every rank makes the same calls; a rank may have none. In a group
// of one nothing happens.
//
// Everything goes to every rank, because scores, metrics and the health of a run are computed from all tokens of a step in one order on
// each of them (docs/distributed.md has the bytes).
#include <cstdint>
#include <span>

#include "kedge/dist/group.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge {

// All ranks' answers, by slot and sample: their rollouts, and nothing else yet. The rows of prompts' files are not sent.
[[nodiscard]] RolloutRows exchange_rollouts(const Group& group, RolloutRows own);

// An Error if these rows, in that order, are not `num_samples` answers to each of `num_slots` prompts: another process may have
// taken prompts from the work queue.
void check_all_answered(const RolloutRows& rows, int64_t num_slots, int64_t num_samples);

// Sends the rewards of the rows at these places, disjoint between ranks, to all.
void exchange_rewards(const Group& group, std::span<const int64_t> own, RolloutRows& rows);

// The same for log-probabilities and entropy, and for values.
void exchange_logprobs(const Group& group, std::span<const int64_t> own, RolloutRows& rows);
void exchange_values(const Group& group, std::span<const int64_t> own, RolloutRows& rows);

}  // namespace kedge
