#pragma once
// A run's metrics.jsonl as it grows, a series for every name, and series downsampled for a screen. Independent of HTTP and charts.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/inspect/run_trends.h"

namespace kedge {

// Reads what was added since the last call. A missing file is empty; one that was truncated, as by a resumed run, or
// replaced is read again. A last line without its newline is left for the next read: it is still being written. Not thread-safe.
class MetricsFeed {
 public:
  explicit MetricsFeed(Path file) : file_(std::move(file)) {}

  // True if there is something new.
  bool update();

  [[nodiscard]] const std::vector<Series>& series() const { return series_; }  // in the order in which names first occurred
  [[nodiscard]] const Series* find(std::string_view name) const;
  [[nodiscard]] int64_t version() const { return version_; }  // changes with every update
  [[nodiscard]] double first_time() const { return first_time_; }
  [[nodiscard]] double last_time() const { return last_time_; }
  // Lines that could not be read are skipped and counted; what was wrong with the first: "metrics.jsonl:12: ...".
  [[nodiscard]] int64_t num_bad_lines() const { return num_bad_; }
  [[nodiscard]] const std::string& first_bad_line() const { return first_bad_; }

 private:
  void forget();
  [[nodiscard]] bool goes_on(const MappedFile& file) const;
  bool add_piece(const MappedFile& file);
  void add_line(std::string_view line);
  void add(int64_t step, std::string_view name, double value);
  void note_time(double time);

  Path file_;
  size_t offset_ = 0;   // of the first byte that was not read
  std::string behind_;  // the bytes before it, to detect a replaced file
  int64_t version_ = 0, num_lines_ = 0, num_bad_ = 0;
  double first_time_ = 0, last_time_ = 0;
  std::string first_bad_;
  std::vector<Series> series_;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> places_;
};

struct ReduceOptions {
  size_t max_points = 600;  // about
  double smoothing = 0;  // from 0 to below 1: the weight of what came before, of at most 1,000 points; a longer series is weighted equally
};

// Points in their order. If there are more than requested, each of many equal parts keeps its minimum and its maximum, and one
// that is not finite if it has any; the first and the last point are always included. Several values of one step are placed between it and
// the next.
struct ReducedSeries {
  std::vector<double> x = {}, y = {};
  std::vector<double> smooth = {};  // at the same x; empty without smoothing
  size_t num_points = 0;            // before
};
[[nodiscard]] ReducedSeries reduced(const Series& series, const ReduceOptions& options);

// The mean of `values` over steps in [begin, end); NaN if none is finite.
[[nodiscard]] double mean_between(const Series& series, int64_t begin, int64_t end);

}  // namespace kedge
