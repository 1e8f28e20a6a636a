#pragma once
// The curves of runs as HTML with SVG in it: one chart per group of metrics, with all runs. Independent of files.
#include <span>
#include <string>

#include "kedge/inspect/metric_series.h"
#include "kedge/inspect/run_charts.h"

namespace kedge::cli {

// The metrics of a run, and its name in the legends.
struct RunCurves {
  std::string name;
  std::vector<Series> series = {};

  [[nodiscard]] const Series* find(std::string_view name_of_series) const;
};

// The main charts, or those below them. Empty if there is none.
enum class ChartRank { main, other };
[[nodiscard]] std::string charts_html(std::span<const RunCurves> runs, ChartRank rank);

// Where the time of steps went: one chart per run, all with one axis. Empty if nothing was timed.
[[nodiscard]] std::string timing_html(std::span<const RunCurves> runs);

}  // namespace kedge::cli
