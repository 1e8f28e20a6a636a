#include "kedge/inspect/before_after.h"

#include <set>
#include <string>

namespace kedge {
namespace {

using Prompts = std::set<std::string>;

void add_step(StepAnswers& answers, Prompts& prompts, const RunRecords& records, int64_t step) {
  for (RolloutRow& row : records.rows(step)) {
    prompts.insert(row.rollout->prompt);
    answers.rows.push_back(std::move(row));
    answers.steps.push_back(step);
  }
}

size_t num_shared(const Prompts& first, const Prompts& second) {
  size_t count = 0;
  for (const std::string& prompt : first) count += second.count(prompt);
  return count;
}

}  // namespace

BeforeAfter find_before_after(const RunRecords& records, const BeforeAfterLimits& limits) {
  BeforeAfter result;
  Prompts early, late;
  const std::vector<int64_t>& steps = records.steps();
  for (size_t low = 0, high = steps.size() - 1; low < high && 2 * low < limits.num_files; ++low, --high) {
    add_step(result.before, early, records, steps[low]);
    add_step(result.after, late, records, steps[high]);
    if (num_shared(early, late) >= limits.num_prompts) break;
  }
  result.pairs = pair_answers(result.before.rows, result.after.rows);
  return result;
}

BeforeAfter compare_steps(const RunRecords& first, int64_t step, const RunRecords& second, int64_t other) {
  BeforeAfter result;
  Prompts early, late;
  add_step(result.before, early, first, step);
  add_step(result.after, late, second, other);
  result.pairs = pair_answers(result.before.rows, result.after.rows);
  return result;
}

}  // namespace kedge
