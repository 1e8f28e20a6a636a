#include "cli/report_charts.h"

#include <algorithm>
#include <cmath>

#include "kedge/core/error.h"
#include "kedge/metrics/progress.h"

#include "cli/svg_chart.h"

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

// How much of what came before counts: about a twentieth of the run. None where there are few numbers.
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

// The parts of a step of one run over stretches of steps, and the rest.
struct Stretches {
  std::vector<std::string> part_names;
  std::vector<Bar> bars;
  std::vector<double> means;  // of the parts over all steps

  [[nodiscard]] double highest() const {
    double highest = 0;
    for (const Bar& bar : bars) {
      double sum = 0;
      for (const double part : bar.parts) sum += part;
      highest = std::max(highest, sum);
    }
    return highest;
  }
};

// The means of the parts over [begin, end), and what they leave of the whole.
std::vector<double> parts_between(const RunCurves& run, const StepTiming& timing, int64_t begin, int64_t end) {
  std::vector<double> parts;
  double sum = 0;
  for (const ChartSeries& part : timing.parts) {
    const Series* series = run.find(part.name);
    const double mean = series == nullptr ? 0 : mean_between(*series, begin, end);
    parts.push_back(std::isfinite(mean) ? mean : 0);
    sum += parts.back();
  }
  const Series* total = timing.total.empty() ? nullptr : run.find(timing.total);
  const double whole = total == nullptr ? 0 : mean_between(*total, begin, end);
  if (total != nullptr) parts.push_back(std::isfinite(whole) ? std::max(0.0, whole - sum) : 0);
  return parts;
}

Stretches stretches_of(const RunCurves& run) {
  Stretches result;
  const std::vector<std::string> names = names_of(std::span(&run, 1));
  const StepTiming timing = timing_of(names);
  for (const ChartSeries& part : timing.parts) result.part_names.push_back(part.label);
  if (!timing.total.empty()) result.part_names.emplace_back(timing.parts.empty() ? "a step" : "the rest");
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const std::string& name : names)
    if (const Series* series = run.find(name);
        name == timing.total ||
        std::any_of(timing.parts.begin(), timing.parts.end(), [&](const ChartSeries& part) { return part.name == name; })) {
      first = std::min(first, series->steps.front());
      last = std::max(last, series->steps.back());
    }
  if (result.part_names.empty() || first > last) return {};
  const int64_t num_steps = last - first + 1, num_bars = std::min(kMostBars, num_steps);
  for (int64_t bar = 0; bar < num_bars; ++bar) {
    const int64_t begin = first + bar * num_steps / num_bars, end = first + (bar + 1) * num_steps / num_bars;
    result.bars.push_back({std::to_string(begin), parts_between(run, timing, begin, end)});
  }
  result.means = parts_between(run, timing, first, last + 1);
  return result;
}

std::string stretches_html(const RunCurves& run, const Stretches& stretches, double highest, bool is_alone) {
  double sum = 0;
  for (const double mean : stretches.means) sum += mean;
  std::vector<LegendEntry> legend;
  for (size_t i = 0; i < stretches.part_names.size(); ++i)
    legend.push_back({str(stretches.part_names[i], " ", format_number(stretches.means[i]), " s, ",
                          std::llround(sum > 0 ? 100 * stretches.means[i] / sum : 0), " %"),
                      i});
  const std::string title = str(is_alone ? "" : run.name + ": ", "a step took ", format_number(sum), " s");
  return str("<figure><figcaption>", escaped(title), "</figcaption>\n", legend_of(legend),
             svg_of(BarChart{
                 .title = title, .part_names = stretches.part_names, .figures = {1, " s"}, .bars = stretches.bars, .highest = highest}),
             "</figure>\n");
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
  std::vector<Stretches> all;
  double highest = 0;
  for (const RunCurves& run : runs) highest = std::max(highest, all.emplace_back(stretches_of(run)).highest());
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i)
    if (!all[i].bars.empty()) html += stretches_html(runs[i], all[i], highest, runs.size() == 1);
  return html.empty() ? "" : "<div class=\"charts\">\n" + html + "</div>\n";
}

}  // namespace kedge::cli
