#include "kedge/inspect/step_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kedge/inspect/run_charts.h"

namespace kedge {
namespace {

struct Sources {
  std::vector<const Series*> parts;
  const Series* total = nullptr;

  [[nodiscard]] std::vector<const Series*> all() const {
    std::vector<const Series*> all = parts;
    if (total != nullptr) all.push_back(total);
    return all;
  }
};

const Series* find(std::span<const Series> series, std::string_view name) {
  const auto found = std::find_if(series.begin(), series.end(), [&](const Series& one) { return one.name == name && !one.empty(); });
  return found == series.end() ? nullptr : &*found;
}

// Places of the numbers of [begin, end).
std::pair<size_t, size_t> places_between(const Series& series, int64_t begin, int64_t end) {
  const auto from = std::lower_bound(series.steps.begin(), series.steps.end(), begin);
  return {from - series.steps.begin(), std::lower_bound(from, series.steps.end(), end) - series.steps.begin()};
}

double sum_between(const Series& series, int64_t begin, int64_t end) {
  double sum = 0;
  const auto [from, to] = places_between(series, begin, end);
  for (size_t i = from; i < to; ++i) sum += std::isfinite(series.values[i]) ? series.values[i] : 0;
  return sum;
}

// Steps are counted by the total if there is one: every step has it.
double num_steps_between(const Sources& sources, int64_t begin, int64_t end) {
  size_t most = 1;
  for (const Series* series : sources.total != nullptr ? std::vector{sources.total} : sources.parts) {
    const auto [from, to] = places_between(*series, begin, end);
    most = std::max(most, to - from);
  }
  return static_cast<double>(most);
}

// Seconds per step of the parts, and the rest of the total.
std::vector<double> parts_between(const Sources& sources, int64_t begin, int64_t end) {
  const double num_steps = num_steps_between(sources, begin, end);
  std::vector<double> parts;
  double known = 0;
  for (const Series* part : sources.parts) known += parts.emplace_back(sum_between(*part, begin, end) / num_steps);
  if (sources.total != nullptr) parts.push_back(std::max(0.0, sum_between(*sources.total, begin, end) / num_steps - known));
  return parts;
}

}  // namespace

StepTimes step_times_of(std::span<const Series> series, int64_t max_stretches) {
  std::vector<std::string> names;
  for (const Series& one : series)
    if (!one.empty()) names.push_back(one.name);
  const StepTiming timing = timing_of(names);
  StepTimes times;
  Sources sources;
  for (const ChartSeries& part : timing.parts) {
    sources.parts.push_back(find(series, part.name));
    times.names.push_back(part.label);
  }
  if (!timing.total.empty()) {
    sources.total = find(series, timing.total);
    times.names.emplace_back(timing.parts.empty() ? "the step" : "the rest");
  }
  if (times.names.empty()) return {};
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const Series* one : sources.all()) {
    first = std::min(first, one->steps.front());
    last = std::max(last, one->steps.back());
  }
  const int64_t num_steps = last - first + 1, num_stretches = std::min(max_stretches, num_steps);
  for (int64_t i = 0; i < num_stretches; ++i) {
    const int64_t begin = first + i * num_steps / num_stretches, end = first + (i + 1) * num_steps / num_stretches;
    times.stretches.push_back({begin, end, parts_between(sources, begin, end)});
  }
  times.means = parts_between(sources, first, last + 1);
  return times;
}

}  // namespace kedge
