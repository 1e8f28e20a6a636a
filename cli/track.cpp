#include <csignal>
#include <cstdio>

#include "kedge/config/yaml.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/inspect/run_on_disk.h"
#include "kedge/metrics/metrics_config.h"
#include "kedge/metrics/trackers/tracker.h"
#include "kedge/train/checkpoint/run_folder.h"
#include "kedge/train/checkpoint/run_lock.h"

#include "cli/commands.h"

namespace kedge::cli {
namespace {

struct TrackOptions {
  std::vector<std::string> what;

  void fields(auto&& field) {
    field("what", what, "the folder of a run; and key=value settings of exp_manager that override the run's", required());
  }
};

const std::vector<std::string> kTrackPositionals = {"what"};

// The part of any run's settings that is of interest here.
struct TrackedRun {
  RunConfig exp_manager;
  void fields(auto&& field) { field("exp_manager", exp_manager, "the run's folder and logs"); }
};

MetricsConfig tracked_metrics(const Path& folder, const std::vector<std::string>& overrides) {
  const Path file = folder / "config.yaml";
  const ConfigNode tree = parse_yaml(read_text(file), file.string());
  const ConfigNode* section = tree.member("exp_manager");
  check(section != nullptr, file.string(), ": no exp_manager section");
  TrackedRun run;
  for (const std::string& warning :
       load_section(describe(run), {file.string(), to_yaml(ConfigNode::map({{"exp_manager", *section}}))}, overrides))
    log_warn(warning);
  return run.exp_manager.metrics;
}

RunOutcome outcome_of_run(const Path& folder) {
  const Path file = folder / "summary.json";
  if (!is_file(file)) return RunOutcome::killed;
  const Json summary = Json::parse(read_text(file), file.string());
  return summary.at("reason", file.string()) == Json("complete") ? RunOutcome::finished : RunOutcome::killed;
}

// Is everything there now?
bool send_rest(Tracker& tracker, RunOutcome end) {
  const std::string name = tracker.link().name();
  const int64_t num_lines = tracker.num_waiting();
  try {
    tracker.send_all();
    tracker.finish(end);
    if (!tracker.settle()) throw Error("did not confirm everything");
  } catch (const Error& error) {
    log_error(name, ": ", error.what(), ". ", tracker.num_waiting(), " of ", num_lines,
              " waiting lines are still not there; try again later");
    return false;
  }
  std::printf("%s: sent %lld line%s; everything in %s is there\n", name.c_str(), static_cast<long long>(num_lines),
              num_lines == 1 ? "" : "s", tracker.metrics_file().string().c_str());
  return true;
}

}  // namespace

std::string track_flags() { return options_help<TrackOptions>(kTrackPositionals); }

int run_track(const Arguments& arguments) {
  const auto options = parse_options<TrackOptions>(arguments, kTrackPositionals);
  std::vector<std::string> folders, overrides;
  for (const std::string& word : options.what) (word.find('=') == std::string::npos ? folders : overrides).push_back(word);
  check(folders.size() == 1, "kedge track: expected the folder of one run, found ", folders.size());
  const Path folder = folders[0];
  check(is_run(folder), folder.string(), ": not the folder of a run");
  check(is_own_run(folder), folder.string(), ": belongs to another user, and its settings name programs; kedge track is for your own runs");
  const MetricsConfig config = tracked_metrics(folder, overrides);
  check(config.create_mlflow_logger || config.create_wandb_logger, folder.string(),
        ": has no tracker. To send it to one, name it: kedge track ", folder.string(),
        " exp_manager.create_mlflow_logger=true exp_manager.mlflow_logger_kwargs.tracking_uri=http://localhost:5000");
  check_trackers(config);
  std::signal(SIGPIPE, SIG_IGN);  // a wandb process that died is an error as any other
  const RunLock lock(folder);     // a run at work sends its lines itself
  bool is_complete = true;
  for (const std::unique_ptr<Tracker>& tracker : make_trackers(config, folder))
    is_complete = send_rest(*tracker, outcome_of_run(folder)) && is_complete;
  return is_complete ? kExitOk : kExitWorld;
}

}  // namespace kedge::cli
