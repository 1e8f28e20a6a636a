#include "cli/dashboard_numbers.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "kedge/core/error.h"
#include "kedge/core/yaml.h"

#include "cli/default_settings.h"
#include "cli/json_lines.h"
#include "cli/run_charts.h"
#include "cli/settings_diff.h"

namespace kedge::cli {
namespace {

std::vector<std::string> names_of(const RunList& runs) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const DashboardRun* run : runs)
    for (const Series& series : run->feed().series())
      if (seen.insert(series.name).second) names.push_back(series.name);
  return names;
}

// In as few digits as a screen needs.
Json numbers_json(const std::vector<double>& values) {
  Json::Array array;
  array.reserve(values.size());
  for (const double value : values) {
    const bool is_whole = std::abs(value) < 1e15 && value == std::floor(value);
    array.push_back(is_whole ? Json(static_cast<int64_t>(value)) : short_number(static_cast<float>(value)));
  }
  return array;
}

Json series_list(const std::vector<ChartSeries>& all) {
  Json::Array list;
  for (const ChartSeries& one : all)
    list.push_back(Json::Object{{"name", one.name}, {"label", one.label}, {"validation", one.is_validation}});
  return list;
}

int64_t num_wild(const Series& series) {
  return std::count_if(series.values.begin(), series.values.end(), [](double value) { return !std::isfinite(value); });
}

// The first and the last step of which any of these tells.
std::optional<std::pair<int64_t, int64_t>> span_of(const MetricsFeed& feed, const std::vector<std::string>& names) {
  std::optional<std::pair<int64_t, int64_t>> span;
  for (const std::string& name : names) {
    const Series* series = feed.find(name);
    if (series == nullptr || series->empty()) continue;
    if (!span) span = {series->steps.front(), series->steps.back()};
    span->first = std::min(span->first, series->steps.front());
    span->second = std::max(span->second, series->steps.back());
  }
  return span;
}

// config.yaml as keys, and what names files and folders of the run itself left out.
FlatSettings settings_of(const DashboardRun& run) { return run.settings().is_object() ? flat_settings(run.settings()) : FlatSettings(); }

std::optional<FlatSettings> defaults_of(const DashboardRun& run) {
  const std::string name = run.on_disk().algorithm == "serve" ? "serve_critic" : run.on_disk().algorithm;
  const std::optional<std::string> yaml = default_settings(name);
  if (!yaml) return std::nullopt;
  return flat_settings(to_json(parse_yaml(*yaml, "defaults")));
}

}  // namespace

Json charts_json(const RunList& runs) {
  const std::vector<std::string> names = names_of(runs);
  Json::Array charts;
  for (const Chart& chart : charts_of(names))
    charts.push_back(Json::Object{{"id", chart.id},
                                  {"title", chart.title},
                                  {"unit", chart.unit},
                                  {"format", name_of(chart.format)},
                                  {"main", chart.is_main},
                                  {"series", series_list(chart.series)}});
  const StepTiming timing = timing_of(names);
  return Json::Object{{"charts", std::move(charts)},
                      {"timing", Json::Object{{"parts", series_list(timing.parts)}, {"total", timing.total}}}};
}

Json series_json(const DashboardRun& run, bool of_main, const ReduceOptions& options) {
  Json::Object all;
  for (const Chart& chart : charts_of(names_of({&run}))) {
    if (chart.is_main != of_main) continue;
    for (const ChartSeries& one : chart.series) {
      const Series* series = run.feed().find(one.name);
      ensure(series != nullptr, "no series ", one.name);
      const ReducedSeries curve = reduced(*series, options);
      Json::Object json{{"x", numbers_json(curve.x)}, {"y", numbers_json(curve.y)}, {"n", static_cast<int64_t>(curve.num_points)}};
      if (!curve.smooth.empty()) json.emplace_back("s", numbers_json(curve.smooth));
      if (const int64_t wild = num_wild(*series); wild > 0) json.emplace_back("wild", wild);
      all.emplace_back(one.name, std::move(json));
    }
  }
  return Json::Object{{"run", run.id()}, {"version", run.feed().version()}, {"series", std::move(all)}};
}

Json timing_json(const DashboardRun& run, int64_t num_bars) {
  const MetricsFeed& feed = run.feed();
  const StepTiming timing = timing_of(names_of({&run}));
  std::vector<std::string> names;
  for (const ChartSeries& part : timing.parts) names.push_back(part.name);
  if (!timing.total.empty()) names.push_back(timing.total);
  const auto span = span_of(feed, names);
  Json::Array from, to, rest;
  std::vector<Json::Array> parts(timing.parts.size());
  const int64_t num_steps = span ? span->second - span->first + 1 : 0;
  num_bars = std::min(num_bars, num_steps);
  for (int64_t bar = 0; bar < num_bars; ++bar) {
    const int64_t begin = span->first + bar * num_steps / num_bars, end = span->first + (bar + 1) * num_steps / num_bars;
    const auto mean = [&](const std::string& name) {
      const double value = mean_between(*feed.find(name), begin, end);
      return std::isfinite(value) ? value : 0;
    };
    double known = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const double value = mean(timing.parts[i].name);
      known += value;
      parts[i].push_back(short_number(static_cast<float>(value)));
    }
    from.emplace_back(begin);
    to.emplace_back(end - 1);
    const double left = timing.total.empty() ? 0 : std::max(0.0, mean(timing.total) - known);
    rest.push_back(short_number(static_cast<float>(left)));
  }
  Json::Array labelled;
  for (size_t i = 0; i < parts.size(); ++i)
    labelled.push_back(Json::Object{{"label", timing.parts[i].label}, {"seconds", std::move(parts[i])}});
  labelled.push_back(Json::Object{{"label", labelled.empty() ? "the step" : "the rest"}, {"seconds", std::move(rest)}});
  return Json::Object{{"run", run.id()}, {"from", std::move(from)}, {"to", std::move(to)}, {"parts", std::move(labelled)}};
}

Json settings_json(const RunList& runs) {
  Json::Array columns, rows;
  std::vector<FlatSettings> all;
  std::string note;
  for (const DashboardRun* run : runs) {
    columns.emplace_back(run->name);
    all.push_back(settings_of(*run));
  }
  if (runs.size() == 1) {
    if (const std::optional<FlatSettings> defaults = defaults_of(*runs[0])) {
      columns.insert(columns.begin(), Json("default"));
      all.insert(all.begin(), *defaults);
    } else {
      note = "the defaults of this command are not known";
    }
  }
  for (const SettingRow& row : differing_settings(all)) {
    Json::Array values;
    for (const std::optional<std::string>& value : row.values) values.push_back(value ? Json(*value) : Json());
    rows.push_back(Json::Object{{"key", row.key}, {"values", std::move(values)}});
  }
  return Json::Object{{"columns", std::move(columns)}, {"rows", std::move(rows)}, {"note", note}};
}

}  // namespace kedge::cli
