#pragma once
// Answers of a step, pairs of them and steps in numbers as JSON, for kedge show --json and the dashboard.
#include <cstdint>

#include "kedge/core/json.h"
#include "kedge/inspect/answer_list.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge::cli {

enum class AnswerParts { main, all };  // all: also ids and per-token values

[[nodiscard]] Json json_of(int64_t step, const RolloutRow& row, AnswerParts parts);
// Lists of two: before and after.
[[nodiscard]] Json json_of(const AnswerPair& pair, const RolloutRow& first, const RolloutRow& second);
[[nodiscard]] Json json_of(int64_t step, const StepNumbers& numbers);

}  // namespace kedge::cli
