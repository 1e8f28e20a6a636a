#pragma once
// How many steps a run has, how they are divided into epochs, and what is due after each of them. Independent of data and training.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kedge/core/json.h"

namespace kedge {

struct StepPlan {
  int64_t steps_per_epoch = 0;  // full batches: the rest of an epoch is not trained on
  int64_t max_steps = 0;
  int64_t offset = 0;  // the steps before a change of the batch size would be this many more with the new size

  [[nodiscard]] int64_t epoch_of(int64_t step) const { return steps_per_epoch == 0 ? 0 : (step + offset) / steps_per_epoch; }
};

// `cap` below 0: none. A set smaller than a batch has no steps.
[[nodiscard]] StepPlan plan_steps(int64_t num_samples, int64_t batch_size, int64_t max_epochs, int64_t cap);
// A warning if the epochs end before the requested `cap` steps. `section` has both keys: "trainer.sft".
[[nodiscard]] std::optional<std::string> fewer_steps_hint(const StepPlan& plan, int64_t max_epochs, int64_t cap, std::string_view section);

// The position of a resumed run.
struct Position {
  int64_t step = 0;
  int64_t consumed_samples = 0;  // less those that dynamic sampling dropped: a step counts as a batch, however many it took
  int64_t num_updates = 0;       // of an online run, whose steps may have several
};
// Its plan if the batch size may have changed since: the remaining samples determine the total number of steps,
// and those consumed the epoch.
[[nodiscard]] StepPlan continue_steps(StepPlan plan, const Position& position, int64_t batch_size, int64_t max_epochs, int64_t cap);

// How many of `num_batches` a limit allows: null all of them, an integer that many, another number that fraction of them (above 1:
// all). `key` opens errors.
[[nodiscard]] int64_t limited_batches(const Json& limit, int64_t num_batches, std::string_view key);

// An interval in steps, from an integer or a fraction of an epoch; a fraction above 0 is at least one step.
[[nodiscard]] int64_t interval_steps(const Json& interval, int64_t steps_per_epoch, std::string_view key);

// When validation and saving are due; an interval of 0: never.
struct Intervals {
  int64_t max_steps = 0, validate = 0, save = 0;
  bool has_validation = true;
};
struct Due {
  bool validate = false, save = false, end = false;
  friend bool operator==(const Due&, const Due&) = default;
};
// After this many steps; `late`: the run's time is over.
[[nodiscard]] Due due_after(int64_t step, const Intervals& intervals, bool late);

// With validation, saves must fall on validated steps, because checkpoints are ranked by its metrics. `section` opens the error.
void check_intervals(const Intervals& intervals, std::string_view section);

}  // namespace kedge
