#include "cli/report/report_page.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/metrics/progress.h"

#include "cli/report/report_style.h"
#include "cli/report/svg_chart.h"
#include "cli/text/run_overview_text.h"

namespace kedge::cli {
namespace {

using Runs = std::vector<ReportRun>;

std::string cell(std::string_view text, std::string_view kind = "") {
  return str("<td", kind.empty() ? "" : str(" class=\"", kind, "\""), ">", escaped(text), "</td>");
}

std::string heading_cell(std::string_view text, size_t columns = 1) {
  return str("<th", columns > 1 ? str(" colspan=\"", columns, "\"") : "", ">", escaped(text), "</th>");
}

// A section of the page with a heading; nothing if it has no content.
std::string section(std::string_view id, std::string_view title, const std::string& content) {
  return content.empty() ? "" : str("<section id=\"", id, "\">\n<h2>", title, "</h2>\n", content, "</section>\n");
}

std::string folded(std::string_view title, const std::string& content) {
  return content.empty() ? "" : str("<details><summary>", escaped(title), "</summary>\n", content, "</details>\n");
}

// Heading of one of several runs.
std::string run_heading(const Runs& runs, size_t i) {
  return runs.size() == 1 ? "" : str("<h3><i class=\"mark k", i % kNumColours, "\"></i>", escaped(runs[i].name), "</h3>\n");
}

std::string facts_html(const RunOverview& overview) {
  std::string html = "<dl class=\"facts\">\n";
  for (const OverviewFact& fact : story_facts(overview))
    html += str("<dt>", escaped(fact.name), "</dt><dd>", escaped(fact.text), "</dd>\n");
  return html + "</dl>\n";
}

// Better, worse or not sure: the colour of the verdict's bar.
std::string_view mood_of(const RunOverview& overview) {
  const NumberRow* row = overview.numbers.main();
  if (overview.log.last_error || row == nullptr) return "unsure";
  const Change change = change_of(row->series);
  if (change == Change::none) return "unsure";
  return (change == Change::rose) == (row->wanted == Wanted::high) ? "good" : "bad";
}

std::string summary_html(const Runs& runs) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunOverview& overview = runs[i].overview;
    std::string verdict = verdict_of(overview.numbers);
    verdict[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(verdict[0])));
    html += str(run_heading(runs, i), "<p class=\"verdict ", mood_of(overview), "\"><b>", escaped(heading_of(overview)), "</b><br>",
                escaped(verdict), ".", overview.hints.empty() ? "" : " But see <a href=\"#doubts\">what may have gone wrong</a>.", "</p>\n",
                facts_html(overview));
  }
  return html;
}

std::string number_cells(const NumberRow* row) {
  const std::optional<Ends> ends = row == nullptr ? std::nullopt : ends_of(row->series);
  if (!ends) return cell("") + cell(row == nullptr ? "" : "not finite") + cell("");
  const std::optional<BestPoint> best = row->wanted == Wanted::any ? std::nullopt : best_of(row->series, row->wanted);
  const Change change = change_of(row->series);
  const bool is_good = (change == Change::rose) == (row->wanted == Wanted::high);
  const std::string_view kind = change == Change::none || row->wanted == Wanted::any ? "n" : is_good ? "n good" : "n bad";
  const std::string_view arrow = change == Change::none ? "" : change == Change::rose ? " \u2191" : " \u2193";
  return cell(figure(ends->first, *row), "n") + cell(figure(ends->last, *row) + std::string(arrow), kind) +
         cell(best ? str(figure(best->value, *row), " at ", best->step) : "", "n");
}

std::string numbers_html(const Runs& runs) {
  std::vector<const NumberRow*> rows;  // of all runs, each name once
  for (const ReportRun& run : runs)
    for (const NumberRow& row : run.overview.numbers.rows)
      if (std::none_of(rows.begin(), rows.end(), [&](const NumberRow* other) { return other->name == row.name; })) rows.push_back(&row);
  if (rows.empty()) return "<p>No metrics yet: metrics.jsonl has none that show how training goes.</p>\n";
  std::string html = "<div class=\"wide\"><table class=\"numbers\">\n<thead>";
  if (runs.size() > 1) {
    html += "<tr><th></th>";
    for (const ReportRun& run : runs) html += heading_cell(run.name, 3);
    html += "</tr>";
  }
  html += "<tr><th></th>";
  for (size_t i = 0; i < runs.size(); ++i) html += "<th>first</th><th>last</th><th>best, at step</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (const NumberRow* row : rows) {
    html += "<tr>" + cell(row->label);
    for (const ReportRun& run : runs) html += number_cells(run.overview.numbers.find(row->name));
    html += "</tr>\n";
  }
  return html +
         "</tbody></table></div>\n<p class=\"note\">first, last: means over a tenth of the steps. An arrow: it changed by more than its "
         "noise "
         "explains.</p>\n";
}

std::string doubts_html(const Runs& runs) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunOverview& overview = runs[i].overview;
    std::string items;
    for (const Hint& hint : overview.hints) items += str("<li>step ", hint.step, ": ", escaped(hint.what), "</li>\n");
    const auto of_log = [&](std::string_view what, const std::string& text) {
      items += str("<li>log.txt, ", what, ": ", escaped(text.substr(0, text.find('\n'))), "</li>\n");
    };
    if (overview.log.first_alarm) of_log(str("its own alarm, step ", overview.log.first_alarm->step), overview.log.first_alarm->what);
    if (overview.log.first_warning && (!overview.log.first_alarm || overview.log.first_warning->what != overview.log.first_alarm->what))
      of_log(str("the first of ", overview.log.num_warnings, overview.log.num_warnings == 1 ? " warning" : " warnings", ", step ",
                 overview.log.first_warning->step),
             overview.log.first_warning->what);
    if (overview.log.last_error) of_log("its last line, an error", *overview.log.last_error);
    if (items.empty()) items = overview.numbers.rows.empty() ? "<li>no metrics to check</li>\n" : "<li>nothing found</li>\n";
    html += str(run_heading(runs, i), "<ul>\n", items, "</ul>\n");
  }
  return "<p class=\"note\">Hints from rules of thumb, not proof.</p>\n" + html;
}

std::string answers_html(const Runs& runs) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i)
    if (!runs[i].answers_html.empty()) html += run_heading(runs, i) + runs[i].answers_html;
  return html;
}

std::string settings_html(const ReportPage& page) {
  std::string html;
  const bool is_alone = page.runs.size() == 1;
  if (page.settings.empty()) {
    html = is_alone ? "<p>All settings are at their defaults.</p>\n" : "<p>All settings are the same.</p>\n";
  } else {
    html = "<div class=\"wide\"><table class=\"settings\">\n<thead><tr><th>key</th>";
    if (is_alone) html += "<th>this run</th><th>default</th>";
    if (!is_alone)
      for (const ReportRun& run : page.runs) html += heading_cell(run.name);
    html += "</tr></thead>\n<tbody>\n";
    for (const SettingRow& row : page.settings) {
      html += "<tr>" + cell(row.key, "code");
      for (const auto& value : row.values) html += value ? cell(*value, "code") : "<td class=\"faint\">not set</td>";
      html += "</tr>\n";
    }
    html += "</tbody></table></div>\n";
  }
  for (const ReportRun& run : page.runs)
    html += folded(str("All settings", is_alone ? "" : " of " + run.name), str("<pre>", escaped(run.settings_text), "</pre>\n"));
  return html;
}

std::string checkpoints_html(const Runs& runs) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunOverview& overview = runs[i].overview;
    html += run_heading(runs, i);
    if (overview.checkpoints.empty()) html += "<p>None that is complete.</p>\n";
    if (!overview.checkpoints.empty()) {
      html += str("<div class=\"wide\"><table>\n<thead><tr><th>step</th><th></th>", heading_cell(overview.monitor),
                  "<th>size</th><th>folder</th></tr></thead>\n<tbody>\n");
      for (const StoryCheckpoint& one : overview.checkpoints)
        html += str("<tr>", cell(std::to_string(one.step), "n"),
                    cell(one.is_best   ? (one.is_last ? "best, last" : "best")
                         : one.is_last ? "last"
                                       : ""),
                    cell(one.number ? format_number(*one.number) : "", "n"), cell(format_bytes(one.bytes), "n"),
                    cell(one.folder.lexically_relative(overview.run.folder).string(), "code"), "</tr>\n");
      html += "</tbody></table></div>\n";
    }
    if (overview.has_model) html += "<p>The model it ended with is in <code>model/</code>, a Hugging Face folder.</p>\n";
  }
  return html;
}

std::string reproduce_html(const Runs& runs) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) {
    const RunOverview& overview = runs[i].overview;
    html += str(run_heading(runs, i), "<pre class=\"command\">", escaped(command_of(overview)), "</pre>\n");
    std::string gone;
    for (const std::vector<StoryFile>* files : {&overview.model_files, &overview.data_files})
      for (const StoryFile& file : *files)
        if (file.state != StoryFile::State::same)
          gone += str("<li><code>", escaped(file.path.string()), "</code> ",
                      file.state == StoryFile::State::gone ? "no longer exists" : "has changed since", "</li>\n");
    if (!gone.empty()) html += str("<p>Some of its inputs have changed:</p>\n<ul>\n", gone, "</ul>\n");
  }
  return html;
}

}  // namespace

std::vector<std::string> short_names(const std::vector<Path>& folders) {
  std::vector<std::vector<std::string>> parts;
  size_t deepest = 1;
  for (const Path& folder : folders) {
    auto& own = parts.emplace_back();
    for (const Path& part : folder.lexically_normal())
      if (!part.empty() && part != "/") own.push_back(part.string());
    deepest = std::max(deepest, own.size());
  }
  for (size_t depth = 1;; ++depth) {
    std::vector<std::string> names;
    for (const auto& own : parts) {
      std::string name;
      for (size_t i = own.size() - std::min(depth, own.size()); i < own.size(); ++i) name += (name.empty() ? "" : "/") + own[i];
      names.push_back(std::move(name));
    }
    if (depth >= deepest || std::set<std::string>(names.begin(), names.end()).size() == names.size()) return names;
  }
}

std::string report_html(const ReportPage& page) {
  std::vector<RunCurves> curves;
  for (const ReportRun& run : page.runs) curves.push_back({run.name, run.overview.metrics});
  const std::string main_charts = charts_html(curves, ChartRank::main);
  std::string html =
      str(kReportMark, "<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\n<title>",
          escaped(page.title), "</title>\n<style>", kReportStyle, kSvgStyle, "</style></head>\n<body>\n<header><h1>", escaped(page.title),
          "</h1></header>\n<main>\n");
  html += section("summary", page.runs.size() == 1 ? "In short" : "The runs in short", summary_html(page.runs));
  html += section("numbers", "Main numbers", numbers_html(page.runs));
  html += section("curves", "Curves", main_charts + folded("More curves", charts_html(curves, ChartRank::other)));
  html += section("doubts", "Where might it have begun to go wrong?", doubts_html(page.runs));
  html += section("answers", "Answers", answers_html(page.runs));
  html += section("time", "Where the time of a step went", timing_html(curves));
  html += section("settings", page.runs.size() == 1 ? "Settings that are not the defaults" : "Settings that differ", settings_html(page));
  html += section("checkpoints", "Checkpoints", checkpoints_html(page.runs));
  html += section("again", "To do it again", reproduce_html(page.runs));
  return html + str("</main>\n<footer>", escaped(page.made), "</footer>\n</body></html>\n");
}

}  // namespace kedge::cli
