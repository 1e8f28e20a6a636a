#include "kedge/inspect/run_trends.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace kedge {
namespace {

constexpr size_t kFewest = 8;  // with fewer values a turn cannot be distinguished from noise
constexpr double kSomeDeviations = 2;
constexpr double kManyDeviations = 4;  // the best of many means is far out by chance alone
constexpr double kShareOfRange = 0.05;

Series finite_part(const Series& series) {
  Series finite{.name = series.name};
  for (size_t i = 0; i < series.values.size(); ++i)
    if (std::isfinite(series.values[i])) finite.add(series.steps[i], series.values[i]);
  return finite;
}

double mean_of(const std::vector<double>& values, size_t begin, size_t end) {
  return std::accumulate(values.begin() + static_cast<int64_t>(begin), values.begin() + static_cast<int64_t>(end), 0.0) /
         static_cast<double>(end - begin);
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

size_t tenth_of(size_t size) { return std::max<size_t>(1, size / 10); }

// Means over an odd number of neighbours, a tenth of all and three at least, at the step in the middle. Only complete windows.
struct Smoothed {
  Series means;
  size_t window = 1;
};

Smoothed smoothed(const Series& finite) {
  const size_t size = finite.values.size();
  Smoothed result{.means = {.name = finite.name}, .window = std::max<size_t>(3, tenth_of(size) | 1U)};
  for (size_t begin = 0; begin + result.window <= size; ++begin)
    result.means.add(finite.steps[begin + result.window / 2], mean_of(finite.values, begin, begin + result.window));
  return result;
}

// Of a mean over a window. In a drifting series neighbours have correlated errors: then means of complete windows are better than single
// values.
double error_of_means(const Series& finite, size_t window) {
  Series blocks;
  for (size_t begin = 0; begin + window <= finite.values.size(); begin += window)
    blocks.add(finite.steps[begin], mean_of(finite.values, begin, begin + window));
  return std::max(noise_of(finite) / std::sqrt(static_cast<double>(window)), noise_of(blocks));
}

// Larger is better.
double merit(double value, Wanted wanted) { return wanted == Wanted::low ? -value : value; }

// The first of the numbers at the end for which `is_so` holds without a break.
template <typename Question>
std::optional<size_t> final_stretch(const std::vector<double>& values, const Question& is_so) {
  size_t begin = values.size();
  while (begin > 0 && is_so(values[begin - 1])) --begin;
  return begin == values.size() ? std::nullopt : std::optional(begin);
}

template <typename Question>
std::optional<int64_t> stays(const Series& series, const Question& is_so) {
  const Series finite = finite_part(series);
  const Series means = finite.values.size() < kFewest ? finite : smoothed(finite).means;
  const std::optional<size_t> begin = final_stretch(means.values, is_so);
  return begin ? std::optional(means.steps[*begin]) : std::nullopt;
}

}  // namespace

std::optional<Ends> ends_of(const Series& series) {
  const Series finite = finite_part(series);
  const size_t size = finite.values.size(), tenth = tenth_of(size);
  if (size == 0) return std::nullopt;
  return Ends{mean_of(finite.values, 0, tenth), mean_of(finite.values, size - tenth, size)};
}

std::optional<BestPoint> best_of(const Series& series, Wanted wanted) {
  std::optional<BestPoint> best;
  const Series finite = finite_part(series);
  for (size_t i = 0; i < finite.values.size(); ++i)
    if (!best || wanted == Wanted::any || merit(finite.values[i], wanted) > merit(best->value, wanted))
      best = {finite.steps[i], finite.values[i]};
  return best;
}

// By how much each number leaves the line between its neighbours: of independent noise, sqrt(1 + 1/4 + 1/4) of its deviation. The median
// is robust to a few jumps; 0.6745 is that of a normal distribution.
double noise_of(const Series& series) {
  const Series finite = finite_part(series);
  if (!tells_noise(finite)) return 0;
  std::vector<double> bends;
  for (size_t i = 1; i + 1 < finite.values.size(); ++i)
    bends.push_back(std::abs(finite.values[i] - (finite.values[i - 1] + finite.values[i + 1]) / 2));
  return median_of(std::move(bends)) / 0.6745 / std::sqrt(1.5);
}

Change change_of(const Series& series) {
  const Series finite = finite_part(series);
  const std::optional<Ends> ends = ends_of(finite);
  if (!ends || !tells_noise(finite)) return Change::none;
  const double error = error_of_means(finite, tenth_of(finite.values.size())) * std::sqrt(2.0);
  const double change = ends->last - ends->first;
  if (std::abs(change) <= kSomeDeviations * error) return Change::none;
  return change > 0 ? Change::rose : Change::fell;
}

bool tells_noise(const Series& series) { return finite_part(series).values.size() >= 4; }

std::optional<Turn> turn_of(const Series& series, Wanted wanted) {
  const Series finite = finite_part(series);
  if (finite.values.size() < kFewest || wanted == Wanted::any) return std::nullopt;
  const auto [means, window] = smoothed(finite);
  const auto [low, high] = std::minmax_element(means.values.begin(), means.values.end());
  const double margin = std::max(kManyDeviations * error_of_means(finite, window) * std::sqrt(2.0), kShareOfRange * (*high - *low));
  const auto best = wanted == Wanted::low ? low : high;
  const std::optional<size_t> begin = final_stretch(means.values, [&](double mean) { return merit(*best - mean, wanted) > margin; });
  if (!begin || means.values.size() - *begin < (window + 1) / 2) return std::nullopt;  // too short to have stayed
  return Turn{means.steps[*begin], means.steps[static_cast<size_t>(best - means.values.begin())], *best, means.values.back()};
}

std::optional<int64_t> stays_above(const Series& series, double limit) {
  return stays(series, [&](double value) { return value > limit; });
}

std::optional<int64_t> stays_below(const Series& series, double limit) {
  return stays(series, [&](double value) { return value < limit; });
}

std::optional<int64_t> first_not_finite(const Series& series) {
  for (size_t i = 0; i < series.values.size(); ++i)
    if (!std::isfinite(series.values[i])) return series.steps[i];
  return std::nullopt;
}

std::string sparkline(const Series& series, size_t width, bool utf8) {
  static constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<std::string_view, 8> kAscii = {"_", ".", ":", "-", "=", "+", "*", "#"};
  const size_t size = series.values.size(), columns = std::min(width, size);
  std::vector<std::optional<double>> means;
  for (size_t i = 0; i < columns; ++i) {
    Series part;
    for (size_t j = i * size / columns; j < (i + 1) * size / columns; ++j) part.add(0, series.values[j]);
    const Series finite = finite_part(part);
    means.push_back(finite.empty() ? std::nullopt : std::optional(mean_of(finite.values, 0, finite.values.size())));
  }
  double low = INFINITY, high = -INFINITY;
  for (const std::optional<double>& mean : means) {
    low = std::min(low, mean.value_or(low));
    high = std::max(high, mean.value_or(high));
  }
  std::string text;
  for (const std::optional<double>& mean : means) {
    const double height = !mean || high == low ? 0.5 : (*mean - low) / (high - low);
    const auto level = static_cast<size_t>(std::lround(height * 7));
    text += !mean ? "!" : utf8 ? kBlocks.at(level) : kAscii.at(level);
  }
  return text;
}

}  // namespace kedge
