#pragma once
// What the tasks of DPO and KTO share: the reference's log-probabilities, how a response is scored against it, and what of the rows must
// be computed before the run.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kedge/algo/supervised/preference_config.h"
#include "kedge/algo/supervised/reference_logprobs.h"
#include "kedge/algo/supervised/supervised.h"

namespace kedge {

// Is a response scored by the mean of its tokens' log-probabilities, or by their sum?
struct ScoreMeans {
  bool preference = false, sft = false;
};
[[nodiscard]] ScoreMeans score_means(const PreferenceTuningConfig& config, bool by_default);

// Responses by the policy and by the reference, with gradients through the policy's alone.
struct ResponseScores {
  Tensor logps;   // [rows]: sums over a response, by the policy
  Tensor ratios;  // [rows]: policy minus reference
  Tensor counts;  // [rows]: tokens of the responses, at least 1

  // Per token if `mean`.
  [[nodiscard]] Tensor scored(const Tensor& sums, bool mean) const { return mean ? sums / counts : sums; }
};
[[nodiscard]] ResponseScores score_responses(const Model& policy, const ReferenceLogprobs& reference, std::span<const ResponseRow> rows,
                                             const PassOptions& pass);

// A task's reference in the course of a run: made at its start, as the settings say.
class TaskReference {
 public:
  explicit TaskReference(const PreferenceTuningConfig& config) : config_(config) {}
  // Computes what the passes need if it is kept.
  void begin(const TaskStart& start, std::vector<ReferencePasses> passes);
  // Before a batch: what is not kept.
  void begin_batch(std::span<const std::vector<ResponseRow>> own);
  [[nodiscard]] const ReferenceLogprobs& get() const;

 private:
  PreferenceTuningConfig config_;
  std::optional<ReferenceLogprobs> reference_;
};

// These rows of a data set.
template <typename Set>
[[nodiscard]] auto examples_of(const Set& set, std::span<const int64_t> rows) {
  std::vector<decltype(set.get(0))> examples;
  for (const int64_t row : rows) examples.push_back(set.get(row));
  return examples;
}

// The micro-batches in which rows of the batches from `step` on come for the first time in the run, in its order. A row's pass is therefore
// that of its first update, and the same after a resume.
[[nodiscard]] BatchList first_passes(const BatchList& batches, int64_t step, int64_t micro_size);

// Passes over these rows.
[[nodiscard]] ReferencePasses reference_passes(BatchList rows,
                                               std::function<std::vector<ResponseRow>(std::span<const int64_t> rows)> rows_of);
// All of these, one after another.
[[nodiscard]] ReferencePasses joined(std::vector<ReferencePasses> parts);

// The task of `Split`, a data set and its loss, for every split of `data` but the test's; `make_split` makes one of its rows.
template <typename Split>
[[nodiscard]] SupervisedTask make_preference_task(const std::map<std::string, Rows>& data, const PreferenceModelConfig& config,
                                                  std::shared_ptr<TaskReference> reference,
                                                  const std::function<std::shared_ptr<Split>(const Rows& rows)>& make_split) {
  SupervisedTask task;
  std::shared_ptr<Split> train;
  std::vector<std::shared_ptr<Split>> validation;
  for (const auto& [name, rows] : data) {
    if (name == "test") continue;
    const std::shared_ptr<Split> split = make_split(rows);
    SupervisedData part = {
        .name = name,
        .size = split->size(),
        .drop_last = config.data.validation_drop_last,
        .compute = [split](std::span<const int64_t> some, const PassOptions& pass) { return split->compute(some, pass); },
        .size_of = [split](int64_t row) { return split->size_of(row); },
        .begin_batch = [split](const BatchRows& batch) { split->begin_batch(batch); },
        .rehearse = [split](std::span<const int64_t> some, const PassOptions& pass) { return split->rehearse(some, pass); }};
    name == "train" ? void(task.train = std::move(part)) : task.validation.push_back(std::move(part));
    name == "train" ? void(train = split) : validation.push_back(split);
  }
  task.num_sums = Split::kNumSums;
  task.losses_add_up = true;
  task.begin = [reference = std::move(reference), train, validation](const TaskStart& start) {
    std::vector<ReferencePasses> passes = train->passes(start.train, start.step, start.micro_size);
    for (size_t i = 0; i < validation.size(); ++i)
      for (ReferencePasses& some : validation[i]->passes(start.validation[i], 0, start.micro_size)) passes.push_back(std::move(some));
    reference->begin(start, std::move(passes));
  };
  return task;
}

// fp64 [k] of scalars or numbers, for RowsResult::sums.
[[nodiscard]] Tensor sums_of(std::vector<Tensor> parts);

// Mean and sample standard deviation of `count` numbers from their sum and the sum of their squares.
struct Spread {
  double mean = 0, std = 0;
};
[[nodiscard]] Spread spread_of(double sum, double squares, double count);

// Settings that contradict each other are a UsageError; `section` is "model.dpo".
void check_preference_weights(const PreferenceTuningConfig& config, const std::string& section);

}  // namespace kedge
