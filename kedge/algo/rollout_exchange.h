#pragma once
// What one rank found out about answers, told to all others. Every rank makes the same calls; a rank may have nothing to tell. In a group
// of one nothing happens.
#include <cstdint>
#include <span>

#include "kedge/algo/answer_row.h"
#include "kedge/dist/group.h"

namespace kedge {

// All ranks' answers, by slot and sample: their rollouts, and nothing else yet. The rows of prompts' files stay where they are.
[[nodiscard]] AnswerRows exchange_rollouts(const Group& group, AnswerRows own);

// Of the rows with these places, which no two ranks share, their rewards go to all.
void exchange_rewards(const Group& group, std::span<const int64_t> own, AnswerRows& rows);

// The same of log-probabilities and entropy, and of values.
void exchange_logprobs(const Group& group, std::span<const int64_t> own, AnswerRows& rows);
void exchange_values(const Group& group, std::span<const int64_t> own, AnswerRows& rows);

}  // namespace kedge
