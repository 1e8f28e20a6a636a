#include "cli/report/report_charts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kedge/core/error.h"
#include "kedge/inspect/step_times.h"
#include "kedge/metrics/progress.h"

#include "cli/report/svg_chart.h"

namespace kedge::cli {
namespace {

// As many points as a picture of 500 units can show; a run of any length then makes a page of the same size.
constexpr size_t kMostPoints = 240;
constexpr int64_t kMostBars = 40;

Figures figures_of(ChartFormat format) {
  switch (format) {
    case ChartFormat::share:
      return {100, " %"};
    case ChartFormat::seconds:
      return {1, " s"};
    case ChartFormat::number:
    case ChartFormat::tiny:
      return {};
  }
  return {};
}

std::vector<std::string> names_of(std::span<const RunCurves> runs) {
  std::vector<std::string> names;
  for (const RunCurves& run : runs)
    for (const Series& series : run.series)
      if (std::find(names.begin(), names.end(), series.name) == names.end()) names.push_back(series.name);
  return names;
}

// The smoothing window: about a twentieth of the run. None if there are few values.
double smoothing_for(size_t num_points) {
  constexpr size_t kFewest = 12;
  return num_points < kFewest ? 0 : 1 - 1 / std::clamp(static_cast<double>(num_points) / 20, 2.0, 20.0);
}

SvgLine line_of(const Series& series, const ChartSeries& about) {
  SvgLine line;
  const bool has_few = series.values.size() == 1;
  line.has_points = about.is_validation || has_few;
  ReducedSeries points =
      reduced(series, {.max_points = kMostPoints, .smoothing = line.has_points ? 0 : smoothing_for(series.values.size())});
  line.x = std::move(points.x);
  line.y = std::move(points.y);
  line.smooth = std::move(points.smooth);
  return line;
}

// One run has a colour for every curve; several have one each, and their curves of one chart other strokes.
std::string chart_html(const Chart& chart, std::span<const RunCurves> runs) {
  LineChart drawn{.title = chart.title, .figures = figures_of(chart.format)};
  std::vector<LegendEntry> legend;
  for (size_t i = 0; i < runs.size(); ++i)
    for (size_t j = 0; j < chart.series.size(); ++j) {
      const ChartSeries& about = chart.series[j];
      const Series* series = runs[i].find(about.name);
      if (series == nullptr || series->empty()) continue;
      SvgLine line = line_of(*series, about);
      const bool is_alone = runs.size() == 1;
      line.label = is_alone ? about.label : chart.series.size() == 1 ? runs[i].name : str(runs[i].name, ", ", about.label);
      line.colour = is_alone ? j : i;
      line.is_dashed = !is_alone && j > 0 && !about.is_validation;
      legend.push_back({line.label, line.colour, line.has_points, line.is_dashed});
      drawn.lines.push_back(std::move(line));
    }
  if (drawn.lines.empty()) return "";
  const std::string unit = chart.unit.empty() ? "" : str(" <small>", escaped(chart.unit), "</small>");
  return str("<figure><figcaption>", escaped(chart.title), unit, "</figcaption>\n", legend_of(legend), svg_of(drawn), "</figure>\n");
}

double highest_of(const StepTimes& times) {
  double highest = 0;
  for (const StepStretch& stretch : times.stretches)
    highest = std::max(highest, std::accumulate(stretch.parts.begin(), stretch.parts.end(), 0.0));
  return highest;
}

std::string times_html(const RunCurves& run, const StepTimes& times, double highest, bool is_alone) {
  const double sum = std::accumulate(times.means.begin(), times.means.end(), 0.0);
  std::vector<LegendEntry> legend;
  for (size_t i = 0; i < times.names.size(); ++i) {
    const double percent = sum > 0 ? std::round(1000 * times.means[i] / sum) / 10 : 0;  // with the digits that the dashboard shows
    legend.push_back({str(times.names[i], " ", format_number(times.means[i]), " s, ", format_number(percent), " %"), i});
  }
  BarChart chart{.title = str(is_alone ? "" : run.name + ": ", "a step took ", format_number(sum), " s"),
                 .part_names = times.names,
                 .figures = {1, " s"},
                 .highest = highest};
  for (const StepStretch& stretch : times.stretches) chart.bars.push_back({std::to_string(stretch.begin), stretch.parts});
  return str("<figure><figcaption>", escaped(chart.title), "</figcaption>\n", legend_of(legend), svg_of(chart), "</figure>\n");
}

}  // namespace

const Series* RunCurves::find(std::string_view name_of_series) const {
  const auto found = std::find_if(series.begin(), series.end(), [&](const Series& one) { return one.name == name_of_series; });
  return found == series.end() ? nullptr : &*found;
}

std::string charts_html(std::span<const RunCurves> runs, ChartRank rank) {
  std::string html;
  for (const Chart& chart : charts_of(names_of(runs)))
    if (chart.is_main == (rank == ChartRank::main)) html += chart_html(chart, runs);
  return html.empty() ? "" : "<div class=\"charts\">\n" + html + "</div>\n";
}

std::string timing_html(std::span<const RunCurves> runs) {
  std::vector<StepTimes> all;
  double highest = 0;
  for (const RunCurves& run : runs) highest = std::max(highest, highest_of(all.emplace_back(step_times_of(run.series, kMostBars))));
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i)
    if (!all[i].empty()) html += times_html(runs[i], all[i], highest, runs.size() == 1);
  return html.empty() ? "" : "<div class=\"charts\">\n" + html + "</div>\n";
}

}  // namespace kedge::cli
