#pragma once
// Which charts a run has: its metrics by name, in groups that belong into one picture, with a title, a unit and an order. For the dashboard
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
  std::string unit;   // of the axis: "nats a token"; may be empty
  ChartFormat format = ChartFormat::number;
  bool is_main = true;  // else it is below, for those who look for it
  std::vector<ChartSeries> series = {};
};

// The charts of lines, those that tell most first. Every name is in one of them, but for those of the times of a step.
[[nodiscard]] std::vector<Chart> charts_of(std::span<const std::string> names);

// Where the time of a step goes, as bars that are stacked in this order. What the parts leave of `total` is the rest.
struct StepTiming {
  std::vector<ChartSeries> parts = {};
  std::string total = {};  // the metric of the whole step; empty: there is none
};
[[nodiscard]] StepTiming timing_of(std::span<const std::string> names);

}  // namespace kedge
