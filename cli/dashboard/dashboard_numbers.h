#pragma once
// Curves, bars and settings of runs as JSON for the dashboard's page. Knows no HTTP and no sockets.
#include <cstdint>
#include <span>

#include "kedge/core/json.h"
#include "kedge/inspect/metric_series.h"

#include "cli/dashboard/dashboard_runs.h"

namespace kedge::cli {

using RunList = std::vector<const DashboardRun*>;

// The charts of all names that the runs have, and the parts of a step.
[[nodiscard]] Json charts_json(const RunList& runs);

// The curves of a run, reduced: those of the main charts, or all others. `null` stands for what is not finite.
[[nodiscard]] Json series_json(const DashboardRun& run, bool of_main, const ReduceOptions& options);

// Where the time of steps went: means over stretches of steps, at most `num_bars` of them.
[[nodiscard]] Json timing_json(const DashboardRun& run, int64_t num_bars);

// Keys that differ between runs; of one run alone, from the defaults.
[[nodiscard]] Json settings_json(const RunList& runs);

}  // namespace kedge::cli
