#pragma once
// Curves, bars and settings of runs as JSON for the dashboard's page. Independent of HTTP and sockets.
#include <cstdint>
#include <span>

#include "kedge/core/json.h"
#include "kedge/inspect/metric_series.h"

#include "cli/dashboard/dashboard_runs.h"

namespace kedge::cli {

using RunList = std::vector<const DashboardRun*>;

// The charts of all names that the runs have, and the parts of a step.
[[nodiscard]] Json charts_json(const RunList& runs);

// The curves of a run, downsampled: those of the main charts, or all others. `null` means not finite.
[[nodiscard]] Json series_json(const DashboardRun& run, bool of_main, const ReduceOptions& options);

// Where the time of steps went: means over ranges of steps, at most `num_bars` of them.
[[nodiscard]] Json timing_json(const DashboardRun& run, int64_t num_bars);

// Keys that differ between runs; of a single run, from the defaults.
[[nodiscard]] Json settings_json(const RunList& runs);

}  // namespace kedge::cli
