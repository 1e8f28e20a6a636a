#pragma once
// One or several runs as a page to share: a single HTML file, which needs no script, no network and no other file. Independent of
// files.
#include <string>
#include <vector>

#include "kedge/inspect/run_overview.h"
#include "kedge/inspect/settings_diff.h"

#include "cli/report/report_charts.h"

namespace kedge::cli {

struct ReportRun {
  std::string name;  // short, and no other run's
  RunOverview overview = {};
  std::string settings_text = {};  // the text of config.yaml
  std::string answers_html = {};   // made by report_answers.h; empty: there are none
};

struct ReportPage {
  std::string title;
  std::string made;  // "2026-11-16 12:00 UTC by kedge 0.1.0"
  std::vector<ReportRun> runs = {};
  // Of several runs, where they differ; of one, where it differs from the defaults.
  std::vector<SettingRow> settings = {};
};

// The first line of every report.
inline constexpr std::string_view kReportMark = "<!DOCTYPE html><!-- kedge report -->\n";

[[nodiscard]] std::string report_html(const ReportPage& page);

// The shortest distinct names of folders: their last parts.
[[nodiscard]] std::vector<std::string> short_names(const std::vector<Path>& folders);

}  // namespace kedge::cli
