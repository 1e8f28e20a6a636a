#pragma once
// The metrics of evaluated policies as a table for people, as CSV and as JSON. Independent of files and models.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kedge/algo/online/eval_numbers.h"
#include "kedge/core/json.h"
#include "kedge/metrics/metrics.h"

#include "cli/text/show_text.h"

namespace kedge::cli {

// One policy.
struct EvalRow {
  std::string name = {};
  std::optional<int64_t> step = {};
  Metrics answers = {};  // as a trainer logs them: rewards, rewards/NAME, watch/NAME, generation_length, ...
  std::optional<MeanOfPrompts> reward = {};
  std::optional<Comparison> against = {};               // the baseline
  std::vector<std::pair<int64_t, double>> passes = {};  // k and pass@k
  std::optional<double> kl = {}, kl_sum = {};           // from the start: of a token, and of an answer
  std::optional<double> logged = {};                    // the reward that the run itself logged at this step

  // The mean over answers, as the trainers count it.
  [[nodiscard]] std::optional<double> mean_reward() const { return answers.find("rewards"); }
};
using EvalRows = std::vector<EvalRow>;

// All metrics of a policy with their names; a missing one is null.
[[nodiscard]] Json eval_json(const EvalRow& row);

// A line of names and one line per policy, with every digit. A missing value is an empty field.
[[nodiscard]] std::string eval_csv(const EvalRows& rows);

inline constexpr const char* kStep = "step";  // if all policies are steps of one run

// A line of headings and one line per policy, at most page.width columns wide: the rest of a line shows the reward as a bar, and columns
// that do not fit are left out, the least important first; of a long name the end is shown. `marked` is the place of the policy with a
// star before it.
struct TableLook {
  PageLook page;
  bool utf8 = false;
  std::optional<size_t> marked = {};
  std::string names = kStep;  // the heading of the first column
};
struct EvalTable {
  std::string text = {};
  std::vector<std::string> left_out = {};  // headings of the columns that did not fit
};
[[nodiscard]] EvalTable eval_table(const EvalRows& rows, const TableLook& look);

// The place of the highest mean reward, of equal ones the first; none if no policy has one.
[[nodiscard]] std::optional<size_t> best_of(const EvalRows& rows);

// "wins 92 % (84-96 %)"
[[nodiscard]] std::string wins_text(const Comparison& against);

}  // namespace kedge::cli
