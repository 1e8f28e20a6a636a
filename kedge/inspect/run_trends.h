#pragma once
// Trends of a series: from which to which value it went, and from which step on it went wrong. Rules of thumb that report nothing if
// noise explains the change. Independent of runs and files.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

// Steps rise; a number may be NaN.
struct Series {
  std::string name;
  std::vector<int64_t> steps = {};
  std::vector<double> values = {};

  void add(int64_t step, double value) {
    steps.push_back(step);
    values.push_back(value);
  }
  [[nodiscard]] bool empty() const { return values.empty(); }
};

enum class Wanted { high, low, any };

// The means of the first and the last tenth, of at least one value; values that are not finite are left out.
struct Ends {
  double first = 0, last = 0;
};
[[nodiscard]] std::optional<Ends> ends_of(const Series& series);

// The best single number and its step; the newest of equal ones.
struct BestPoint {
  int64_t step = 0;
  double value = 0;
};
[[nodiscard]] std::optional<BestPoint> best_of(const Series& series, Wanted wanted);

// How far values are from a smooth line through them, as a standard deviation; a trend adds nothing to it. 0 for fewer than four.
[[nodiscard]] double noise_of(const Series& series);
[[nodiscard]] bool tells_noise(const Series& series);  // does it have four?

// Is the last tenth above or below the first by more than noise explains? None if the noise is not known.
enum class Change { rose, fell, none };
[[nodiscard]] Change change_of(const Series& series);

// From `step` on, and to the end, the smoothed series is worse than its best by more than its noise and by a twentieth of its range.
struct Turn {
  int64_t step = 0, best_step = 0;
  double best = 0, last = 0;  // smoothed
};
[[nodiscard]] std::optional<Turn> turn_of(const Series& series, Wanted wanted);

// The first step from which on, and to the end, the smoothed series is above (below) a limit.
[[nodiscard]] std::optional<int64_t> stays_above(const Series& series, double limit);
[[nodiscard]] std::optional<int64_t> stays_below(const Series& series, double limit);

[[nodiscard]] std::optional<int64_t> first_not_finite(const Series& series);

// The series in at most `width` characters, lowest to highest; "!" if there is no finite number. Empty for an empty one.
[[nodiscard]] std::string sparkline(const Series& series, size_t width, bool utf8);

}  // namespace kedge
