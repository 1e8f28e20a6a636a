#include "kedge/train/step_plan.h"

#include <algorithm>

namespace kedge {

StepPlan plan_steps(int64_t num_samples, int64_t batch_size, int64_t max_epochs, int64_t cap) {
  const int64_t steps = num_samples / batch_size, all = steps * max_epochs;
  return {steps, cap < 0 ? all : std::min(all, cap)};
}

std::vector<int64_t> StepPlan::epochs_from(int64_t step) const {
  std::vector<int64_t> epochs;
  while (step < max_steps) {
    const int64_t end = std::min(max_steps, (epoch_of(step) + 1) * steps_per_epoch);
    epochs.push_back(end - step);
    step = end;
  }
  return epochs;
}

}  // namespace kedge
