#pragma once
// Answers of a run as HTML: the best, the worst and those in the middle of a step, and the same prompts early and late. Independent of
// files; texts from the run are escaped.
#include <span>
#include <string>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/inspect/before_after.h"

namespace kedge::cli {

// Places of the rows: the best, those nearest the middle reward, and the worst, of different prompts as far as there are some. None is
// in two of them, and none has no reward.
struct TypicalAnswers {
  std::vector<size_t> best = {}, middle = {}, worst = {};
};
[[nodiscard]] TypicalAnswers typical_answers(std::span<const RolloutRow> rows, size_t num_each);

[[nodiscard]] std::string step_html(int64_t step, std::span<const RolloutRow> rows);

// Those whose reward rose most, a typical one, and the one that fell most: not only the good ones.
[[nodiscard]] std::string before_after_html(const BeforeAfter& both);

// Samples of a run that keeps no records: objects with "step", "prompt", "response" and numbers, as samples.jsonl has them.
[[nodiscard]] std::string samples_html(std::span<const Json> samples);

}  // namespace kedge::cli
