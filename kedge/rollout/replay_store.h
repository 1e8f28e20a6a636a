#pragma once
// Replays the records of a run to its trainer: returns the recorded answers whatever the fingerprint, and compares the results with
// what was recorded. Reads only.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "kedge/reward/reward.h"
#include "kedge/rollout/step_comparison.h"
#include "kedge/rollout/step_store.h"

namespace kedge {

// Functions for checking a step closely. Empty ones are skipped.
struct ReplayHelpers {
  std::function<void(RolloutRows& rows)> add_logprobs = {};  // of the rows' tokens, by the policy at that time
  RewardSource* rewards = nullptr;                           // scores the recorded answers again
  bool draws = false;                                        // and the policy samples them again
};

// Not thread-safe, but find() may be called from several threads between two steps' load() and save().
class ReplayStore final : public StepStore {
 public:
  // Records are FOLDER/step-N.jsonl. `vocab_size`: the number of the network's ids. `tolerance` as in compare_step().
  ReplayStore(Path folder, int64_t vocab_size, double tolerance);

  // The next step's answers are checked with these, before its updates; those of later steps are not.
  void look_closely(ReplayHelpers helpers) { helpers_ = std::move(helpers); }

  // None if the step has no record. UsageError for a damaged or impossible one: "FILE:LINE: ...".
  [[nodiscard]] std::optional<RolloutRows> load(const StepKey& key) override;
  void save(RecordHeader header, RolloutRows rows) override;

  // The recorded row of an answer of the current step.
  [[nodiscard]] const RolloutRow* find(const Rollout& rollout) const;

  // Of the step saved last; without quantities if it has no record.
  [[nodiscard]] const StepComparison& comparison() const { return comparison_; }
  [[nodiscard]] const std::string& weights_after() const { return weights_after_; }

 private:
  [[nodiscard]] CloseLook look(const StepKey& key) const;

  Path folder_;
  int64_t vocab_size_;
  double tolerance_;
  ReplayHelpers helpers_;
  std::optional<RecordedStep> recorded_;
  std::map<const Rollout*, size_t> places_;
  CloseLook look_;
  StepComparison comparison_;
  std::string weights_after_;
};

// A step's record, with every number. UsageError for one that is damaged.
[[nodiscard]] RecordedStep read_recorded_step(const Path& folder, int64_t step);

}  // namespace kedge
