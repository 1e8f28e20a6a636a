#pragma once
// The same prompts early and late in a run: how its answers changed. Independent of HTTP and terminals.
#include <cstdint>
#include <vector>

#include "kedge/inspect/answer_list.h"
#include "kedge/inspect/run_records.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge {

// Answers of several steps, and of which.
struct StepAnswers {
  RolloutRows rows = {};
  std::vector<int64_t> steps = {};  // of every row
};
struct BeforeAfter {
  StepAnswers before, after;
  std::vector<AnswerPair> pairs = {};
};

struct BeforeAfterLimits {
  size_t num_prompts = 24;  // enough of them
  size_t num_files = 64;    // read at most
};
// A prompt recurs only in the next epoch, so two steps rarely share one. Steps are read from both ends until there are
// enough prompts that are answered in both halves.
[[nodiscard]] BeforeAfter find_before_after(const RunRecords& records, const BeforeAfterLimits& limits = {});

// Of two given steps, which may be of two runs.
[[nodiscard]] BeforeAfter compare_steps(const RunRecords& first, int64_t step, const RunRecords& second, int64_t other);

}  // namespace kedge
