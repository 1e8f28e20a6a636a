#include "kedge/inspect/run_overview.h"

#include <algorithm>
#include <array>
#include <set>

#include "kedge/config/yaml.h"
#include "kedge/core/error.h"
#include "kedge/inspect/metric_series.h"
#include "kedge/model/files/run_summary.h"
#include "kedge/train/checkpoint/run_folder.h"
#include "kedge/train/checkpoint/run_record.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCountedBytes = size_t{1} << 30U;

std::string text_of(const Json& value) { return value.is_null() ? "" : value.is_text() ? value.as_text("") : value.dump(); }

std::optional<int64_t> num_lines_of(const Path& file) {
  const MappedFile mapped(file);
  const std::string_view text = mapped.text();
  if (text.size() > kCountedBytes || file.extension() == ".safetensors" || file.extension() == ".gz") return std::nullopt;
  const int64_t ended = std::count(text.begin(), text.end(), '\n');
  return ended + (text.empty() || text.ends_with('\n') ? 0 : 1);
}

StoryFile look_at(const Json& entry, const Path& started_in, const std::string& where) {
  StoryFile file{.path = started_in / entry.at("file", where).as_text(where)};
  if (!is_file(file.path)) {
    file.state = StoryFile::State::gone;
    return file;
  }
  const bool is_same = static_cast<int64_t>(fs::file_size(file.path)) == entry.at("bytes", where).as_integer(where) &&
                       file_hash(file.path) == entry.at("hash", where).as_text(where);
  file.state = is_same ? StoryFile::State::same : StoryFile::State::changed;
  file.num_lines = num_lines_of(file.path);
  return file;
}

// Each once: the same file may serve for training and validation.
std::vector<StoryFile> files_of(const RunOverview& overview, const char* key) {
  std::vector<StoryFile> files;
  std::set<Path> seen;
  const Json* entries = overview.last_start().find(key);
  if (entries == nullptr) return files;
  for (const Json& entry : entries->as_array("run.json")) {
    StoryFile file = look_at(entry, overview.run.started_in, "run.json");
    if (seen.insert(file.path).second) files.push_back(std::move(file));
  }
  return files;
}

// The key of the initial model differs between commands.
Path model_folder_of(const RunOverview& overview) {
  for (const char* key : {"pretrained_checkpoint.restore_from_path", "model.restore_from_path"})
    if (const std::string name = setting_text(overview.settings, key); !name.empty()) {
      const Path from_start = overview.run.started_in / name;
      return is_folder(from_start) ? from_start : Path(name);
    }
  return {};
}

// "the server at rm01:5555"; of several, as their lists are.
std::string server_text(const Json& settings, const std::string& key) {
  const std::string host = setting_text(settings, key + ".ip"), port = setting_text(settings, key + ".port");
  if (host.empty()) return "";
  const bool is_one = !host.starts_with("[") && !port.starts_with("[");
  return is_one ? str("the server at ", host, ":", port) : str("the servers at ", host, ", port ", port);
}

// Empty without one on a server.
std::string critic_of(const Json& settings) { return server_text(settings, "remote_critic_rm.critic"); }

std::vector<std::string> rewards_of(const Json& settings) {
  std::vector<std::string> rewards;
  for (const char* group : {"reward.sources", "reward.watch"}) {
    const Json* sources = setting(settings, group);
    if (sources == nullptr || !sources->is_object()) continue;
    for (const auto& [name, source] : sources->as_object(group)) {
      std::string text = group == std::string_view("reward.watch") ? "watched, not trained on: " + name : name;
      if (const std::string kind = setting_text(source, "kind"); kind != name) text += " (" + kind + ")";
      for (const char* key : {"file", "url", "command", "folder", "pattern"})
        if (const std::string value = setting_text(source, key); !value.empty()) text += str(", ", key, " ", value);
      if (const std::string weight = setting_text(source, "weight"); weight != "" && weight != "1.0") text += ", weight " + weight;
      rewards.push_back(text);
    }
  }
  if (const std::string clip = setting_text(settings, "reward.clip"); !clip.empty() && !rewards.empty())
    rewards.push_back("clipped to " + clip);
  if (const std::string server = server_text(settings, "remote_rm.reward_model"); !server.empty()) rewards.push_back(server);
  const Json* sources = setting(settings, "reward.sources");
  const bool has_sources = sources != nullptr && sources->is_object() && !sources->as_object("").empty();
  if (has_sources || setting_text(settings, "remote_critic_rm").empty()) return rewards;
  const bool combined = setting_text(settings, "remote_critic_rm.combine_rm_and_critic_server") == "true";
  const std::string critic = critic_of(settings);
  if (combined && !critic.empty()) rewards.push_back("the critic's" + critic.substr(std::string("the").size()));
  if (const std::string server = server_text(settings, "remote_critic_rm.reward_model"); !combined && !server.empty())
    rewards.push_back(server);
  return rewards;
}

// The model folder to describe: it may be incomplete, only its configuration is needed.
std::optional<NetworkFacts> network_of(const RunOverview& overview) {
  std::vector<Path> folders = {overview.run.folder / "model"};
  if (!overview.run.checkpoints.empty()) folders.push_back(overview.run.checkpoints.back().folder / "model");
  folders.push_back(overview.model_folder);
  for (const Path& folder : folders) {
    try {
      if (is_folder(folder)) return read_network_facts(folder, overview.run.started_in);
    } catch (const UsageError&) {
      continue;  // truncated or removed: another one may be readable
    }
  }
  return std::nullopt;
}

std::vector<StoryCheckpoint> checkpoints_of(const RunOverview& overview) {
  const CheckpointConfig config = ranking_of(overview.settings);
  const std::vector<Checkpoint> ranked = rank_checkpoints(overview.run.checkpoints, config);
  std::vector<StoryCheckpoint> checkpoints;
  for (const Checkpoint& one : overview.run.checkpoints) {
    StoryCheckpoint told{.folder = one.folder, .step = one.step()};
    for (const CheckpointFile& file : one.files) told.bytes += file.bytes;
    told.is_best = !ranked.empty() && ranked.front().folder == one.folder;
    told.is_last = one.folder == overview.run.checkpoints.back().folder;
    told.number = monitored_number(one.meta, config.monitor);
    checkpoints.push_back(std::move(told));
  }
  return checkpoints;
}

// A server's last log line, if a signal ended it.
bool was_stopped(const Path& log) { return is_file(log) && read_text(log).ends_with(" stopped\n"); }

void read_metrics_of(RunOverview& overview) {
  MetricsFeed feed(overview.run.folder / "metrics.jsonl");
  feed.update();
  check(feed.num_bad_lines() == 0, overview.run.folder.string(), "/", feed.first_bad_line());
  overview.metrics = feed.series();
  overview.numbers = read_numbers(overview.metrics);
  overview.numbers.first_time = feed.first_time();
  overview.numbers.last_time = feed.last_time();
}

}  // namespace

RunEnd end_of(const RunOnDisk& run, int64_t num_steps, bool has_error) {
  const bool is_held = is_run_held(run.folder);
  RunEnd end{.step = num_steps};
  if (const Json* steps = run.starts.as_array("run.json").back().find("max_steps")) end.max_steps = steps->as_integer("run.json");
  if (has_error) end.status = "ended by an error";
  if (const auto summary = read_run_summary(run.folder, run.starts)) {
    end.max_steps = summary->max_steps;
    if (summary->step >= end.step) {
      end.step = summary->step;
      if (!summary->is_old) {
        end.status = summary->is_complete() ? summary->reason : "ended: " + summary->reason;
        end.model_step = summary->model_step;
      }
    }
  }
  if (run.algorithm == "serve" && end.status.empty() && was_stopped(run.folder / "log.txt")) end.status = "ended: stopped by a signal";
  if (end.max_steps > 0) end.max_steps = std::max(end.max_steps, end.step);  // a complete run that was then asked for fewer
  if (end.status.empty()) end.status = "not complete, and not running: it was killed, or its machine went down";
  if (is_held) end.status = "running";
  return end;
}

const Json* setting(const Json& settings, std::string_view name) {
  const Json* at = &settings;
  while (at != nullptr && !name.empty()) {
    const size_t dot = std::min(name.size(), name.find('.'));
    at = at->find(name.substr(0, dot));
    name.remove_prefix(std::min(name.size(), dot + 1));
  }
  return at;
}

std::string setting_text(const Json& settings, std::string_view name) {
  const Json* found = setting(settings, name);
  return found == nullptr ? "" : text_of(*found);
}

CheckpointConfig ranking_of(const Json& settings) {
  CheckpointConfig config;
  config.monitor = setting_text(settings, "exp_manager.checkpoint_callback_params.monitor");
  config.mode = setting_text(settings, "exp_manager.checkpoint_callback_params.mode") == "max" ? MonitorMode::max : MonitorMode::min;
  return config;
}

Json read_settings(const RunOnDisk& run) { return to_json(parse_yaml(read_text(run.config), run.config.string())); }

std::string title_of(const RunOnDisk& run) {
  const auto& words = run.starts.as_array("run.json").back().at("command_line", "run.json").as_array("run.json");
  const bool names_server = run.algorithm == "serve" && words.size() > 2;
  return str("kedge ", run.algorithm, names_server ? " " + words[2].as_text("run.json") : "");
}

RunOverview read_run_story(const Path& folder) {
  RunOverview overview;
  overview.run = open_run(folder);
  overview.settings = read_settings(overview.run);
  overview.title = title_of(overview.run);
  overview.model_folder = model_folder_of(overview);
  overview.model_files = files_of(overview, "model");
  overview.data_files = files_of(overview, "data");
  overview.rewards = rewards_of(overview.settings);
  overview.critic = critic_of(overview.settings);
  read_metrics_of(overview);
  if (const Path log = overview.run.folder / "log.txt"; is_file(log)) overview.log = read_log(read_text(log));
  const Json* max_kl = setting(overview.settings, str("trainer.", overview.run.algorithm, ".health.max_kl"));
  overview.hints = find_hints(overview.numbers, max_kl != nullptr && max_kl->is_number() ? max_kl->as_number("") : 0);
  overview.network = network_of(overview);
  overview.monitor = ranking_of(overview.settings).monitor;
  overview.checkpoints = checkpoints_of(overview);
  overview.has_model = is_folder(overview.run.folder / "model");
  static_cast<RunEnd&>(overview) = end_of(overview.run, overview.numbers.num_steps, overview.log.last_error.has_value());
  return overview;
}

// Words of letters, digits and a few marks stay as they are.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

std::string command_of(const RunOverview& overview) {
  std::string line = "cd " + quoted(overview.run.started_in.string()) + " &&";
  for (const Json& word : overview.last_start().at("command_line", "run.json").as_array("run.json"))
    line += " " + quoted(word.as_text("run.json"));
  return line;
}

}  // namespace kedge
