#include "cli/text/run_overview_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/metrics/progress.h"
#include "kedge/text/unicode/text_layout.h"

namespace kedge::cli {
namespace {

constexpr size_t kNameWidth = 13;
constexpr size_t kMostFiles = 4, kMostHints = 6, kMostCheckpoints = 6;

std::string count_of(int64_t count, std::string_view what) { return str(with_commas(count), " ", what, count == 1 ? "" : "s"); }

std::string joined(const std::vector<std::string>& parts, std::string_view between = ", ") {
  std::string text;
  for (const std::string& part : parts)
    if (!part.empty()) text += (text.empty() ? "" : std::string(between)) + part;
  return text;
}

// Relative to the current folder.
std::string shown(const Path& path) {
  const Path near = path.lexically_relative(std::filesystem::current_path());
  return near.empty() || *near.begin() == ".." ? path.string() : near.string();
}

std::string start_text(const RunOverview& overview, const char* key) { return setting_text(overview.last_start(), key); }

std::string clock_of(double seconds_since_1970, const char* format) {
  const auto time = static_cast<std::time_t>(seconds_since_1970);
  std::tm utc{};
  gmtime_r(&time, &utc);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &utc)};
}

std::string state_text(const StoryFile& file) {
  switch (file.state) {
    case StoryFile::State::same:
      return "unchanged";
    case StoryFile::State::changed:
      return "CHANGED since";
    case StoryFile::State::gone:
      return "MISSING";
  }
  return "";
}

// One word for all files of its initial model.
std::string base_state(const RunOverview& overview) {
  for (const StoryFile& file : overview.model_files)
    if (file.state != StoryFile::State::same) return file.path.filename().string() + " " + state_text(file);
  return overview.model_files.empty() ? "" : "unchanged";
}

// Facts in their order; those without a text are left out.
struct FactList {
  std::vector<OverviewFact> all;

  void add(std::string name, std::string text) {
    if (!text.empty()) all.push_back({std::move(name), std::move(text)});
  }
};

void add_what(FactList& facts, const RunOverview& overview) {
  const std::string base = overview.model_folder.empty() ? "?" : shown(overview.model_folder);
  const std::string state = base_state(overview);
  facts.add("began with", state.empty() ? base : str(base, " (", state, ")"));
  if (overview.network) facts.add("network", network_text(*overview.network));
  const bool is_lora = overview.network && overview.network->rank > 0;
  const std::string dtype = start_text(overview, "dtype");
  const std::string ranks = start_text(overview, "ranks");
  facts.add("trained",
            joined({is_lora ? "the adapters" : "all weights",
                    dtype.empty() ? "precision " + setting_text(overview.settings, "trainer.precision") : dtype,
                    start_text(overview, "device"), ranks.empty() ? "" : ranks + (ranks == "1" ? " rank" : " ranks"),
                    "lr " + setting_text(overview.settings, "model.optim.lr"), "seed " + setting_text(overview.settings, "model.seed")}));
}

void add_data(FactList& facts, const RunOverview& overview) {
  for (size_t i = 0; i < std::min(kMostFiles, overview.data_files.size()); ++i) {
    const StoryFile& file = overview.data_files[i];
    facts.add(i == 0 ? "data" : "",
              str(shown(file.path), " (", joined({file.num_lines ? count_of(*file.num_lines, "line") : "", state_text(file)}), ")"));
  }
  if (overview.data_files.size() > kMostFiles) facts.add("", str("and ", overview.data_files.size() - kMostFiles, " more"));
  for (size_t i = 0; i < overview.rewards.size(); ++i) facts.add(i == 0 ? "rewards" : "", overview.rewards[i]);
  if (!overview.critic.empty()) facts.add("critic", overview.critic);
}

void add_time(FactList& facts, const RunOverview& overview) {
  const auto num_starts = static_cast<int64_t>(overview.run.starts.as_array("run.json").size());
  const RunNumbers& numbers = overview.numbers;
  std::string begun = setting_text(overview.run.starts.as_array("run.json").front(), "started").substr(0, 16);  // to the minute
  std::replace(begun.begin(), begun.end(), 'T', ' ');
  std::string heard = clock_of(numbers.last_time, "%F %H:%M");
  if (heard.substr(0, 10) == begun.substr(0, 10)) heard.erase(0, 11);
  std::vector<std::string> parts = {begun + (numbers.last_time > 0 ? " to " + heard : "") + " UTC"};
  if (numbers.seconds > 0) parts.push_back(format_duration(numbers.seconds) + " in steps and validations");
  parts.push_back(num_starts == 1 ? "started once" : str("started ", num_starts, " times"));
  facts.add("time", joined(parts));
  facts.add("made by", joined({"kedge " + start_text(overview, "kedge.version") + " " + start_text(overview, "kedge.commit"),
                               "torch " + start_text(overview, "torch"),
                               str(start_text(overview, "machine.cores"), " cores of ", start_text(overview, "machine.cpu")),
                               start_text(overview, "host")}));
  facts.add("forked from", start_text(overview, "parent"));
}

std::string row_line(const NumberRow& row, const PageLook& look, bool utf8) {
  const std::optional<Ends> ends = ends_of(row.series);
  const std::optional<BestPoint> best = row.wanted == Wanted::any ? std::nullopt : best_of(row.series, row.wanted);
  std::string line = pad_right(row.label, 22) + pad_left(ends ? figure(ends->first, row) : "nan", 10) +
                     pad_left(ends ? figure(ends->last, row) : "nan", 10) + pad_left(best ? figure(best->value, row) : "", 10) +
                     pad_left(best ? str(best->step) : "", 8);
  const size_t used = 62;
  if (look.width > used + 8) line += "  " + sparkline(row.series, std::min<size_t>(40, look.width - used), utf8);
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

void add_numbers(FactPage& page, const RunOverview& overview, const PageLook& look, bool utf8) {
  if (overview.numbers.rows.empty()) return page.raw("No metrics yet: metrics.jsonl has none that show how training goes.");
  page.raw(pad_right("Did it work?", 22) + pad_left("first", 10) + pad_left("last", 10) + pad_left("best", 10) + pad_left("at step", 8));
  for (const NumberRow& row : overview.numbers.rows) page.raw(row_line(row, look, utf8));
  const std::string_view doubt = overview.hints.empty() ? "." : ". But see below.";
  const std::string remark = str("first, last: means over a tenth of the steps. In short: ", verdict_of(overview.numbers), doubt);
  for (const std::string& line : wrap(remark, look.width)) page.raw(line);
}

// Long texts end in dots: this is an overview, log.txt has the full text.
std::string shortened(std::string_view text, size_t most) {
  const std::string first_line(text.substr(0, text.find('\n')));
  const std::string clean = printable(first_line);
  return columns_of(clean) <= most ? clean : wrap(clean, most - 3).front() + "...";
}

void add_hints(FactPage& page, const RunOverview& overview, const PageLook& look) {
  for (const std::string& line : wrap("Where might it have begun to go wrong? (hints from rules of thumb, not proof)", look.width))
    page.raw(line);
  for (size_t i = 0; i < std::min(kMostHints, overview.hints.size()); ++i)
    page.add(str("  step ", overview.hints[i].step), overview.hints[i].what);
  if (overview.hints.size() > kMostHints) page.add("", str("and ", overview.hints.size() - kMostHints, " more; --json has all"));
  if (overview.hints.empty()) page.raw(overview.numbers.rows.empty() ? "  no metrics to check" : "  nothing found in its metrics");
  const LogFindings& log = overview.log;
  if (log.first_alarm)
    page.add("  log.txt", str("its own alarm, step ", log.first_alarm->step, ": ", shortened(log.first_alarm->what, 160)));
  if (log.first_warning && (!log.first_alarm || log.first_warning->what != log.first_alarm->what))
    page.add("  log.txt", str(log.num_warnings == 1 ? "one warning" : str("the first of ", log.num_warnings, " warnings"), ", step ",
                              log.first_warning->step, ": ", shortened(log.first_warning->what, 120)));
  if (log.last_error) page.add("  log.txt", "its last line, an error: " + shortened(*log.last_error, 240));
}

void add_checkpoints(FactPage& page, const RunOverview& overview) {
  std::vector<std::string> parts;
  const size_t size = overview.checkpoints.size();
  for (size_t i = 0; i < size; ++i) {
    const StoryCheckpoint& one = overview.checkpoints[i];
    if (size > kMostCheckpoints && !one.is_best && !one.is_last) continue;
    std::vector<std::string> roles = {one.is_best ? "best" : "", one.is_last ? "last" : "",
                                      one.number ? overview.monitor + " " + format_number(*one.number) : ""};
    const std::string about = joined(roles);
    parts.push_back(str("step ", one.step, about.empty() ? "" : " (" + about + ")"));
  }
  const std::string each = size == 0 ? "" : format_bytes(overview.checkpoints.back().bytes) + (size == 1 ? "" : " each");
  page.add("checkpoints",
           size == 0 ? "none that is complete" : str(size > kMostCheckpoints ? str(size, ", among them ") : "", joined(parts), "; ", each));
  const bool is_earlier = overview.model_step && *overview.model_step != overview.step;
  if (overview.has_model)
    page.add("model", str("model/, a Hugging Face folder", overview.network && overview.network->rank > 0 ? " with the adapters" : "",
                          is_earlier ? str(", of step ", *overview.model_step) : ""));
}

bool is_online(const RunOverview& overview) { return is_folder(overview.run.folder / "rollouts"); }

void add_commands(FactPage& page, const RunOverview& overview, const std::string& name, const PageLook& look) {
  const std::string run = quoted(name);
  const int64_t hint = overview.hints.empty() ? std::max<int64_t>(0, overview.step - 1) : overview.hints.front().step;
  page.raw("Next steps:");
  const auto command = [&](const std::string& line, std::string_view what) {
    const std::string both = "  " + pad_right(line, 44) + " " + std::string(what);
    page.raw(columns_of(both) <= look.width ? both : "  " + line);
  };
  if (is_online(overview)) {
    command("kedge show " + run, "read its answers");
    command("kedge eval " + run, "compare its checkpoints");
    command("kedge replay " + run + str(" --step ", hint), "recompute a step");
    command("kedge bisect " + run, "verify every step");
  }
  const bool has_better = std::any_of(overview.checkpoints.begin(), overview.checkpoints.end(),
                                      [](const StoryCheckpoint& one) { return one.is_best && !one.is_last; });
  if (!overview.checkpoints.empty() || overview.has_model)
    command("kedge export " + run + (has_better ? " OUT --best" : " OUT"), "a model for transformers");
  if (!overview.checkpoints.empty()) command("kedge inspect " + run + " --verify", "are its checkpoints undamaged?");
  command("kedge inspect " + run + " --command", "the command line that made it");
}

std::string state_name(StoryFile::State state) {
  return state == StoryFile::State::same ? "same" : state == StoryFile::State::changed ? "changed" : "gone";
}

Json files_json(const std::vector<StoryFile>& files) {
  Json::Array array;
  for (const StoryFile& file : files)
    array.push_back(Json::Object{
        {"file", file.path.string()}, {"state", state_name(file.state)}, {"lines", file.num_lines ? Json(*file.num_lines) : Json()}});
  return array;
}

Json hint_json(const std::optional<Hint>& hint) { return hint ? Json(Json::Object{{"step", hint->step}, {"what", hint->what}}) : Json(); }

Json row_json(const NumberRow& row) {
  const std::optional<Ends> ends = ends_of(row.series);
  const std::optional<BestPoint> best = row.wanted == Wanted::any ? std::nullopt : best_of(row.series, row.wanted);
  const Change change = change_of(row.series);
  return Json::Object{{"name", row.name},
                      {"first", ends ? Json(ends->first) : Json()},
                      {"last", ends ? Json(ends->last) : Json()},
                      {"best", best ? Json(best->value) : Json()},
                      {"best_step", best ? Json(best->step) : Json()},
                      {"noise", noise_of(row.series)},
                      {"change", change == Change::rose   ? "rose"
                                 : change == Change::fell ? "fell"
                                                          : "none"}};
}

}  // namespace

void FactPage::add(std::string_view name, std::string_view text) {
  if (text.empty()) return;
  const size_t width = std::max(look_.width, name_width_ + 20) - name_width_;
  bool is_first = true;
  for (const std::string& line : wrap(printable(text), width)) {
    text_ += pad_right(is_first ? std::string(name) : "", name_width_) + line + "\n";
    is_first = false;
  }
}

std::string heading_of(const RunOverview& overview) {
  std::string steps = with_commas(overview.step);
  if (overview.max_steps > 0) steps += " of " + with_commas(overview.max_steps);
  return str(overview.title, ", ", overview.step > 0 || overview.max_steps > 0 ? steps + " steps, " : "", overview.status);
}

std::vector<OverviewFact> story_facts(const RunOverview& overview) {
  FactList facts;
  add_what(facts, overview);
  add_data(facts, overview);
  add_time(facts, overview);
  return std::move(facts.all);
}

std::string story_text(const RunOverview& overview, const std::string& name, const PageLook& look, bool utf8) {
  FactPage page(kNameWidth, look);
  for (const std::string& line : wrap(printable(str(name, ": ", heading_of(overview))), look.width)) page.raw(line);
  page.skip();
  for (const OverviewFact& fact : story_facts(overview)) page.add(fact.name, fact.text);
  page.skip();
  add_numbers(page, overview, look, utf8);
  page.skip();
  add_hints(page, overview, look);
  page.skip();
  add_checkpoints(page, overview);
  add_commands(page, overview, name, look);
  return page.text();
}

Json story_json(const RunOverview& overview) {
  Json::Array rows, hints, checkpoints, rewards;
  for (const NumberRow& row : overview.numbers.rows) rows.push_back(row_json(row));
  for (const Hint& hint : overview.hints) hints.push_back(hint_json(hint));
  for (const std::string& reward : overview.rewards) rewards.emplace_back(reward);
  for (const StoryCheckpoint& one : overview.checkpoints)
    checkpoints.push_back(Json::Object{{"folder", one.folder.string()},
                                       {"step", one.step},
                                       {"bytes", one.bytes},
                                       {"best", one.is_best},
                                       {"last", one.is_last},
                                       {"number", one.number ? Json(*one.number) : Json()}});
  return Json::Object{{"folder", overview.run.folder.string()},
                      {"command", overview.title},
                      {"status", overview.status},
                      {"step", overview.step},
                      {"max_steps", overview.max_steps > 0 ? Json(overview.max_steps) : Json()},
                      {"base", overview.model_folder.string()},
                      {"network", overview.network ? network_json(*overview.network) : Json()},
                      {"model_files", files_json(overview.model_files)},
                      {"data_files", files_json(overview.data_files)},
                      {"rewards", std::move(rewards)},
                      {"starts", static_cast<int64_t>(overview.run.starts.as_array("run.json").size())},
                      {"seconds", overview.numbers.seconds},
                      {"numbers", std::move(rows)},
                      {"verdict", verdict_of(overview.numbers)},
                      {"hints", std::move(hints)},
                      {"first_alarm", hint_json(overview.log.first_alarm)},
                      {"first_warning", hint_json(overview.log.first_warning)},
                      {"warnings", overview.log.num_warnings},
                      {"monitor", overview.monitor},
                      {"checkpoints", std::move(checkpoints)},
                      {"model", overview.has_model ? Json((overview.run.folder / "model").string()) : Json()},
                      {"model_step", overview.model_step ? Json(*overview.model_step) : Json()},
                      {"last_start", overview.last_start()},
                      {"reproduce", command_of(overview)}};
}

}  // namespace kedge::cli
