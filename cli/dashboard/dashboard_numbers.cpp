#include "cli/dashboard/dashboard_numbers.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "kedge/config/yaml.h"
#include "kedge/core/error.h"
#include "kedge/inspect/run_charts.h"
#include "kedge/inspect/settings_diff.h"
#include "kedge/inspect/step_times.h"

#include "cli/default_settings.h"
#include "cli/text/json_lines.h"

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

// config.yaml as keys, without those that name files and folders of the run itself.
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
  const StepTimes times = step_times_of(run.feed().series(), num_bars);
  Json::Array from, to, parts;
  for (const StepStretch& stretch : times.stretches) {
    from.emplace_back(stretch.begin);
    to.emplace_back(stretch.end - 1);
  }
  for (size_t i = 0; i < times.names.size(); ++i) {
    Json::Array seconds;
    for (const StepStretch& stretch : times.stretches) seconds.push_back(short_number(static_cast<float>(stretch.parts[i])));
    parts.push_back(Json::Object{{"label", times.names[i]}, {"seconds", std::move(seconds)}, {"mean", times.means[i]}});
  }
  return Json::Object{{"run", run.id()}, {"from", std::move(from)}, {"to", std::move(to)}, {"parts", std::move(parts)}};
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
