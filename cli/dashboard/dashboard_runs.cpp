#include "cli/dashboard/dashboard_runs.h"

#include <algorithm>
#include <cmath>

#include "kedge/config/yaml.h"
#include "kedge/core/error.h"
#include "kedge/inspect/run_trends.h"
#include "kedge/rollout/record_file.h"

namespace kedge::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLogEnd = size_t{256} << 10U;  // of the end of log.txt
constexpr int kLevels = 3;

std::optional<fs::file_time_type> time_of(const Path& file) {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(file, error);
  return error ? std::nullopt : std::optional(time);
}

// The last bytes of a file, from the start of a line.
std::string log_end(const Path& path) {
  const MappedFile file(path);
  const size_t begin = file.size() - std::min(file.size(), kLogEnd);
  std::string text = file.read(begin, file.size());
  return begin == 0 ? text : text.substr(std::min(text.size(), text.find('\n') + 1));
}

void add_runs(std::vector<Path>& runs, const Path& folder, int levels) {
  std::error_code error;
  std::vector<Path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  for (const Path& one : folders) {
    if (is_run(one)) {
      runs.push_back(one);
    } else if (levels > 1) {
      add_runs(runs, one, levels - 1);
    }
  }
}

Json number_or_null(std::optional<double> value) { return value && std::isfinite(*value) ? Json(*value) : Json(); }

Json tile(std::string_view label, std::string_view format, std::optional<double> first, std::optional<double> last) {
  return Json::Object{{"label", label}, {"format", format}, {"first", number_or_null(first)}, {"last", number_or_null(last)}};
}

// Over the last tenth of the steps, as `ends_of` has it.
std::optional<double> last_of(const MetricsFeed& feed, std::string_view name) {
  const Series* series = feed.find(name);
  const std::optional<Ends> ends = series == nullptr ? std::nullopt : ends_of(*series);
  return ends ? std::optional(ends->last) : std::nullopt;
}

std::optional<double> tokens_per_s(const MetricsFeed& feed) {
  if (const auto told = last_of(feed, "timers/tokens_per_s")) return told;
  const auto length = last_of(feed, "train_rollouts/generation_length"), rows = last_of(feed, "train_rollouts/rollout_size"),
             seconds = last_of(feed, "train/step_time");
  return length && rows && seconds && *seconds > 0 ? std::optional(*length * *rows / *seconds) : std::nullopt;
}

// The last parts of a path, "a/b" of 2.
std::string last_parts(const Path& path, size_t count) {
  std::vector<std::string> parts;
  for (const Path& part : path) parts.push_back(part.string());
  std::string text;
  for (size_t i = parts.size() - std::min(count, parts.size()); i < parts.size(); ++i) text += (text.empty() ? "" : "/") + parts[i];
  return text;
}

}  // namespace

DashboardRun::DashboardRun(int64_t id, Path folder) : id_(id), folder_(std::move(folder)), feed_(folder_ / "metrics.jsonl") {}

// Read again when the run was started again.
void DashboardRun::read_start() {
  const auto time = time_of(folder_ / "run.json");
  if (time && time == start_time_) return;
  on_disk_ = open_run(folder_);
  settings_ = read_settings(on_disk_);
  start_time_ = time;
}

void DashboardRun::read_log_end() {
  const Path file = folder_ / "log.txt";
  const auto time = time_of(file);
  if (!time || time == log_time_) return;
  has_error_ = read_log(log_end(file)).last_error.has_value();
  log_time_ = time;
}

void DashboardRun::update() {
  feed_.update();
  if (numbers_version_ != feed_.version()) {
    numbers_ = read_numbers(feed_.series());
    tiles_ = tiles();
    numbers_version_ = feed_.version();
  }
  try {
    read_start();
    read_log_end();
    end_ = end_of(on_disk_, numbers_.num_steps, has_error_);
    trouble_.clear();
  } catch (const Error& error) {
    trouble_ = error.what();
  }
}

// By the mean time of the last steps.
std::optional<double> DashboardRun::seconds_left() const {
  const Series* times = feed_.find("train/step_time");
  if (end_.status != "running" || times == nullptr || times->empty() || end_.max_steps <= end_.step) return std::nullopt;
  const double mean = mean_between(*times, std::max<int64_t>(0, times->steps.back() - 9), times->steps.back() + 1);
  return mean * static_cast<double>(end_.max_steps - end_.step);
}

// The most important metrics, if present: the reward or the loss, its validation, how far the policy went, and how fast.
Json DashboardRun::tiles() const {
  Json::Array all;
  const auto add = [&](const NumberRow* row) {
    const std::optional<Ends> ends = row == nullptr ? std::nullopt : ends_of(row->series);
    if (!ends) return;
    Json one = tile(row->label, row->is_share ? "share" : "number", ends->first, ends->last);
    const Change change = change_of(row->series);
    const bool is_good = (change == Change::rose) == (row->wanted == Wanted::high);
    one.set("change", change == Change::none || row->wanted == Wanted::any ? "" : is_good ? "better" : "worse");
    all.push_back(std::move(one));
  };
  const NumberRow* main = numbers_.main();
  add(main);
  for (const NumberRow& row : numbers_.rows)
    if (row.name.starts_with("train_rollouts/watch/")) add(&row);
  for (const char* metric : {"val_rollouts/rewards", "validation/loss", "validation/acc", "train_rollouts/init_policy_kl",
                             "train_rollouts/generation_length", "train_rollouts/fraction_of_samples_properly_ended"})
    if (const NumberRow* row = numbers_.find(metric); row != nullptr && row != main) add(row);
  if (const auto rate = tokens_per_s(feed_)) all.push_back(tile("tokens per second", "number", std::nullopt, rate));
  return all;
}

Json DashboardRun::summary() const {
  const std::vector<int64_t> recorded = recorded_steps(folder_ / "rollouts");
  std::error_code error;
  const auto sample_bytes = fs::file_size(folder_ / "samples.jsonl", error);
  const bool is_known = start_time_.has_value();
  return Json::Object{{"id", id_},
                      {"name", name},
                      {"folder", folder_.string()},
                      {"title", is_known ? Json(title_of(on_disk_)) : Json("a run")},
                      {"status", trouble_.empty() ? end_.status : "cannot be read: " + trouble_},
                      {"running", trouble_.empty() && end_.status == "running"},
                      {"step", end_.step},
                      {"max_steps", end_.max_steps},
                      {"first_time", feed_.first_time()},
                      {"last_time", feed_.last_time()},
                      {"seconds", numbers_.seconds},
                      {"seconds_left", number_or_null(seconds_left())},
                      {"version", feed_.version()},
                      {"records", Json::Object{{"count", static_cast<int64_t>(recorded.size())},
                                               {"first", recorded.empty() ? Json() : Json(recorded.front())},
                                               {"last", recorded.empty() ? Json() : Json(recorded.back())},
                                               {"keep", is_known ? Json(setting_text(settings_, "rollouts.keep")) : Json()}}},
                      {"sample_bytes", error ? Json(0) : Json(static_cast<int64_t>(sample_bytes))},
                      {"tiles", tiles_}};
}

Json DashboardRun::notes() const {
  Json::Array notes;
  const auto add = [&](std::string_view kind, std::optional<int64_t> step, const std::string& what) {
    notes.push_back(Json::Object{{"kind", kind}, {"step", step ? Json(*step) : Json()}, {"what", what}});
  };
  if (!trouble_.empty()) add("error", std::nullopt, trouble_);
  if (feed_.num_bad_lines() > 0)
    add("error", std::nullopt,
        str(feed_.num_bad_lines(), " lines of metrics.jsonl could not be read; the first: ", feed_.first_bad_line()));
  const Json* max_kl = setting(settings_, str("trainer.", on_disk_.algorithm, ".health.max_kl"));
  for (const Hint& hint : find_hints(numbers_, max_kl != nullptr && max_kl->is_number() ? max_kl->as_number("") : 0))
    add("hint", hint.step, hint.what);
  try {
    const LogFindings log = is_file(folder_ / "log.txt") ? read_log(log_end(folder_ / "log.txt")) : LogFindings();
    if (log.first_alarm) add("alarm", log.first_alarm->step, log.first_alarm->what);
    if (log.first_warning) add("warning", log.first_warning->step, str("the first of ", log.num_warnings, ": ", log.first_warning->what));
    if (log.last_error) add("error", std::nullopt, *log.last_error);
  } catch (const Error& error) {
    add("error", std::nullopt, error.what());
  }
  return notes;
}

DashboardRuns::DashboardRuns(const std::vector<std::string>& folders) {
  for (const std::string& name : folders) {
    check(is_folder(name), name, ": no such folder");
    const Path folder = fs::weakly_canonical(name);
    if (is_run(folder)) {
      const bool is_new = std::none_of(runs_.begin(), runs_.end(), [&](const auto& run) { return run->folder() == folder; });
      if (is_new) runs_.push_back(std::make_unique<DashboardRun>(static_cast<int64_t>(runs_.size()), folder));
      continue;
    }
    check(!runs_below(folder).empty(), name,
          ": neither the folder of a run, which holds config.yaml and run.json, nor one with runs in it");
    roots_.push_back(folder);
  }
  update();
}

void DashboardRuns::find_new() {
  for (const Path& root : roots_)
    for (const Path& folder : runs_below(root)) {
      const bool is_new = std::none_of(runs_.begin(), runs_.end(), [&](const auto& run) { return run->folder() == folder; });
      if (is_new) runs_.push_back(std::make_unique<DashboardRun>(static_cast<int64_t>(runs_.size()), folder));
    }
}

// The last part of the folder's path, or as many as distinguish it from the others.
void DashboardRuns::name_all() {
  for (const auto& run : runs_) {
    const auto is_shared = [&](const std::string& name, size_t count) {
      return std::any_of(runs_.begin(), runs_.end(),
                         [&](const auto& other) { return other != run && last_parts(other->folder(), count) == name; });
    };
    size_t count = 1;
    while (count < 8 && is_shared(last_parts(run->folder(), count), count)) ++count;
    run->name = last_parts(run->folder(), count);
  }
}

void DashboardRuns::update() {
  const size_t num_before = runs_.size();
  find_new();
  if (runs_.size() != num_before || (!runs_.empty() && runs_.front()->name.empty())) name_all();
  for (const auto& run : runs_) run->update();
}

const DashboardRun* DashboardRuns::find(int64_t id) const {
  return id >= 0 && id < static_cast<int64_t>(runs_.size()) ? runs_[static_cast<size_t>(id)].get() : nullptr;
}

std::vector<Path> runs_below(const Path& folder) {
  std::vector<Path> runs;
  add_runs(runs, folder, kLevels);
  return runs;
}

}  // namespace kedge::cli
