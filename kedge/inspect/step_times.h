#pragma once
// Where the time of a run's steps went: seconds per step of every part, over ranges of steps and over all of them. One implementation
// for the dashboard and for reports. Independent of files and charts.
#include <span>

#include "kedge/inspect/metric_series.h"

namespace kedge {

struct StepStretch {
  int64_t begin = 0, end = 0;  // steps; `end` is excluded
  std::vector<double> parts;   // seconds per step, in the order of the names
};

struct StepTimes {
  std::vector<std::string> names;  // of the parts, for people; the last is the rest, or the step if nothing else is known
  std::vector<StepStretch> stretches;
  std::vector<double> means;  // seconds per step over all steps

  [[nodiscard]] bool empty() const { return stretches.empty(); }
};

// A part that not every step has (a validation, a save) counts as 0 in the others, so that parts add up to the step. Empty if no
// time was logged.
[[nodiscard]] StepTimes step_times_of(std::span<const Series> series, int64_t max_stretches);

}  // namespace kedge
