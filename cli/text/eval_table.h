#pragma once
// The numbers of evaluated policies as a table for people, as CSV and as JSON. Knows no files and no models.
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

// All numbers of a policy with their names; a number that is not there is null.
[[nodiscard]] Json eval_json(const EvalRow& row);

// A line of names and a line a policy, with every digit. A number that is not there is an empty field.
[[nodiscard]] std::string eval_csv(const EvalRows& rows);

inline constexpr const char* kStep = "step";  // where all policies are steps of one run

// A line of headings and a line a policy, at most page.width columns wide: what is left of a line shows the reward as a bar, and columns
// that find no room are left out, those that say least first; of a long name the end is shown. `marked` is the place of the policy with a
// star before it.
struct TableLook {
  PageLook page;
  bool utf8 = false;
  std::optional<size_t> marked = {};
  std::string names = kStep;  // what the first column is called
};
struct EvalTable {
  std::string text = {};
  std::vector<std::string> left_out = {};  // headings of the columns that found no room
};
[[nodiscard]] EvalTable eval_table(const EvalRows& rows, const TableLook& look);

// The place of the highest mean reward, of equal ones the first; none where no policy has one.
[[nodiscard]] std::optional<size_t> best_of(const EvalRows& rows);

// "wins 92 % (84-96 %)"
[[nodiscard]] std::string wins_text(const Comparison& against);

}  // namespace kedge::cli
