#pragma once
// Which charts a run has: its metrics by name, in groups that share one chart, with a title, a unit and an order. For the dashboard
// and for reports. Knows the names of metrics; no values, no files.
#include <span>
#include <string>
#include <vector>

namespace kedge {

// How a number is shown: 3.14, 52 % (of 0.52), 1.2 s, 0.00012.
enum class ChartFormat { number, share, seconds, tiny };
[[nodiscard]] std::string_view name_of(ChartFormat format);  // "number"

struct ChartSeries {
  std::string name;            // of the metric: "train_rollouts/rewards"
  std::string label;           // "training", "validation", the name of a source
  bool is_validation = false;  // few numbers between many: drawn with points

  friend bool operator==(const ChartSeries&, const ChartSeries&) = default;
};

struct Chart {
  std::string id;     // "reward"; of letters, digits and _ alone where the chart is one of ours
  std::string title;  // "Reward"
  std::string unit;   // of the axis: "nats per token"; may be empty
  ChartFormat format = ChartFormat::number;
  bool is_main = true;  // else it is in the lower part
  std::vector<ChartSeries> series = {};
};

// The line charts, the most important first. Every name is in one of them, except the times of a step.
[[nodiscard]] std::vector<Chart> charts_of(std::span<const std::string> names);

// Where the time of a step goes, as bars that are stacked in this order. The remainder of `total` is the rest.
struct StepTiming {
  std::vector<ChartSeries> parts = {};
  std::string total = {};  // the metric of the complete step; empty: there is none
};
[[nodiscard]] StepTiming timing_of(std::span<const std::string> names);

}  // namespace kedge
