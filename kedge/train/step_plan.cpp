#include "kedge/train/step_plan.h"

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {

StepPlan plan_steps(int64_t num_samples, int64_t batch_size, int64_t max_epochs, int64_t cap) {
  const int64_t steps = num_samples / batch_size, all = steps * max_epochs;
  return {steps, cap < 0 ? all : std::min(all, cap)};
}

std::optional<std::string> fewer_steps_hint(const StepPlan& plan, int64_t max_epochs, int64_t cap, std::string_view section) {
  if (cap < 0 || plan.max_steps >= cap) return std::nullopt;
  return str(section, ".max_steps: ", cap, " steps are requested, but ", plan.max_steps,
             plan.max_steps == 1 ? " is made: " : " are made: ", section, ".max_epochs=", max_epochs, " over ", plan.steps_per_epoch,
             plan.steps_per_epoch == 1 ? " step" : " steps", " per epoch; raise ", section, ".max_epochs for more");
}

StepPlan continue_steps(StepPlan plan, const Position& position, int64_t batch_size, int64_t max_epochs, int64_t cap) {
  if (position.consumed_samples == position.step * batch_size) return plan;
  const int64_t left = plan.steps_per_epoch * max_epochs * batch_size - position.consumed_samples;
  const int64_t steps = position.step + std::max<int64_t>(0, left) / batch_size;
  plan.max_steps = cap < 0 ? steps : std::min(steps, cap);
  // Samples at the end of an epoch that are no full batch any more are skipped.
  plan.offset = (position.consumed_samples + batch_size - 1) / batch_size - position.step;
  return plan;
}

int64_t limited_batches(const Json& limit, int64_t num_batches, std::string_view key) {
  if (limit.is_null()) return num_batches;
  const double value = limit.as_number(key);
  check(value >= 0, key, ": expected a number of batches, a fraction of them or null, found ", limit.dump());
  if (limit.is_integer()) return std::min(num_batches, limit.as_integer(key));
  return value > 1 ? num_batches : static_cast<int64_t>(value * static_cast<double>(num_batches));
}

int64_t interval_steps(const Json& interval, int64_t steps_per_epoch, std::string_view key) {
  const double value = interval.as_number(key);
  if (interval.is_integer()) return std::max<int64_t>(0, interval.as_integer(key));
  check(value >= 0 && value <= 1, key, ": expected a number of steps or a fraction of an epoch, found ", interval.dump());
  if (value == 0) return 0;
  return std::max<int64_t>(1, static_cast<int64_t>(value * static_cast<double>(steps_per_epoch)));
}

Due due_after(int64_t step, const Intervals& intervals, bool late) {
  const auto divides = [&](int64_t interval) { return interval > 0 && step % interval == 0; };
  const bool end = step == intervals.max_steps;
  const bool validates = intervals.has_validation && intervals.validate > 0;
  return {validates && (divides(intervals.validate) || end || late), intervals.save > 0 && (divides(intervals.save) || end || late), end};
}

void check_intervals(const Intervals& intervals, std::string_view section) {
  if (!intervals.has_validation || intervals.validate <= 0 || intervals.save <= 0) return;
  check(intervals.save % intervals.validate == 0, section, ".save_interval: ", intervals.save, " is not a multiple of val_check_interval, ",
        intervals.validate);
}

}  // namespace kedge
