#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>

#include "kedge/config/yaml.h"
#include "kedge/core/error.h"
#include "kedge/core/files.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/core/version.h"
#include "kedge/inspect/before_after.h"

#include "cli/commands.h"
#include "cli/default_settings.h"
#include "cli/report/report_answers.h"
#include "cli/report/report_page.h"
#include "cli/text/json_lines.h"

namespace kedge::cli {
namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string out = "report.html";
  std::optional<std::string> title;
  bool answers = true;

  void fields(auto&& field) {
    field("runs", runs, "folders of one or more runs; several are plotted in the same charts", required());
    field("out", out, "the file to write; - is standard output");
    field("title", title, "title of the page; null: the names of the runs");
    field("answers", answers, "include responses; --no-answers: only metrics, for data that others may not see");
  }
};

const std::vector<std::string> kReportPositionals = {"runs"};

// Newest last, from the end of samples.jsonl; for a run without records these are its only answers.
std::vector<Json> newest_samples(const Path& run) {
  constexpr size_t kMost = 6;
  std::vector<Json> samples;
  if (const Path file = run / "samples.jsonl"; is_file(file))
    for_each_json_line(file.string(), [&](const Json& value, const std::string&) {
      samples.push_back(value);
      if (samples.size() > kMost) samples.erase(samples.begin());
    });
  return samples;
}

std::string answers_of(const RunOverview& overview) {
  const Path folder = overview.run.folder;
  if (!is_folder(folder / "rollouts")) return samples_html(newest_samples(folder));
  try {
    const RunRecords records(folder.string());
    const int64_t last = records.steps().back();
    return step_html(last, records.rows(last)) + before_after_html(find_before_after(records));
  } catch (const UsageError& error) {  // removed or damaged: the report is written without them
    log_warn("no answers in the report: ", error.what());
    return samples_html(newest_samples(folder));
  }
}

// Where it differs from the defaults.
std::vector<SettingRow> set_by_hand(const RunOverview& overview) {
  std::string name = overview.title.substr(std::string("kedge ").size());
  std::replace(name.begin(), name.end(), ' ', '_');
  const std::optional<std::string> defaults = default_settings(name);
  if (!defaults) return {};
  return differing_settings(std::array{flat_settings(overview.settings), flat_settings(to_json(parse_yaml(*defaults, name)))});
}

std::vector<SettingRow> settings_of(const std::vector<ReportRun>& runs) {
  if (runs.size() == 1) return set_by_hand(runs[0].overview);
  std::vector<FlatSettings> all;
  for (const ReportRun& run : runs) all.push_back(flat_settings(run.overview.settings));
  return differing_settings(all);
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%F %H:%M UTC", &utc)};
}

ReportPage read_page(const ReportOptions& options) {
  ReportPage page;
  std::vector<Path> folders;
  for (const std::string& name : options.runs) {
    const Path folder = std::filesystem::weakly_canonical(name);
    check(std::find(folders.begin(), folders.end(), folder) == folders.end(), "kedge report: ", name, " is named twice");
    folders.push_back(folder);
  }
  const std::vector<std::string> names = short_names(folders);
  for (size_t i = 0; i < folders.size(); ++i) {
    ReportRun run{.name = names[i], .overview = read_run_story(options.runs[i])};
    run.settings_text = read_text(run.overview.run.config);
    if (options.answers) run.answers_html = answers_of(run.overview);
    page.runs.push_back(std::move(run));
    page.title += (i == 0 ? "" : ", ") + names[i];
  }
  if (options.title) page.title = *options.title;
  page.made = str("Written ", now_text(), " by kedge ", version(), " (", commit(), ").");
  page.settings = settings_of(page.runs);
  return page;
}

// An existing file is replaced only if it is a report, so that a mistyped name destroys nothing.
void check_out(const Path& out) {
  check(!is_folder(out), "--out: ", out.string(), " is a folder; expected the name of a file");
  if (out.has_parent_path()) check(is_folder(out.parent_path()), "--out: no folder ", out.parent_path().string());
  if (!is_file(out)) return;
  const MappedFile there(out);
  check(there.text().starts_with(kReportMark), "--out: ", out.string(), " exists and is not a kedge report; give another file");
}

}  // namespace

std::string report_flags() { return options_help<ReportOptions>(kReportPositionals); }

int run_report(const Arguments& arguments) {
  const auto options = parse_options<ReportOptions>(arguments, kReportPositionals);
  const bool prints = options.out == "-";
  if (!prints) check_out(options.out);
  const std::string html = report_html(read_page(options));
  if (prints) {
    print_text(html);
  } else {
    write_atomic(options.out, html);
    print_text(str(options.out, ": ", format_bytes(static_cast<int64_t>(html.size())), "\n"));
  }
  return kExitOk;
}

}  // namespace kedge::cli
