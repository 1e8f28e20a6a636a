#pragma once
// Where the time of a run's steps went: seconds a step of every part, over stretches of steps and over all of them. One way of counting,
// for the dashboard and for reports. Knows no files and no picture.
#include <span>

#include "kedge/inspect/metric_series.h"

namespace kedge {

struct StepStretch {
  int64_t begin = 0, end = 0;  // steps; `end` is none of them
  std::vector<double> parts;   // seconds a step, in the order of the names
};

struct StepTimes {
  std::vector<std::string> names;  // of the parts as people read them; the last is the rest, or where nothing else is known the step
  std::vector<StepStretch> stretches;
  std::vector<double> means;  // seconds a step over all steps

  [[nodiscard]] bool empty() const { return stretches.empty(); }
};

// A part that not every step has (a validation, a save) counts as nothing in the others, so that parts add up to the step. Empty where no
// time was logged.
[[nodiscard]] StepTimes step_times_of(std::span<const Series> series, int64_t max_stretches);

}  // namespace kedge
