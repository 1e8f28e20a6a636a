#pragma once
// How many steps a run has and how they fall into epochs. Knows no data and no training.
#include <cstdint>
#include <vector>

namespace kedge {

struct StepPlan {
  int64_t steps_per_epoch = 0;  // whole batches: what is left of an epoch is not trained on
  int64_t max_steps = 0;

  [[nodiscard]] int64_t epoch_of(int64_t step) const { return steps_per_epoch == 0 ? 0 : step / steps_per_epoch; }
  // Steps still to run in each epoch, the one that `step` stands in first.
  [[nodiscard]] std::vector<int64_t> epochs_from(int64_t step) const;
};

// `cap` below 0: none. A set smaller than a batch has no steps.
[[nodiscard]] StepPlan plan_steps(int64_t num_samples, int64_t batch_size, int64_t max_epochs, int64_t cap);

}  // namespace kedge
