#pragma once
// The folder of a run: where it lies, how long the run may take, and what of an earlier run in it is gone on with.
#include <optional>
#include <string>
#include <string_view>

#include "kedge/metrics/metrics_config.h"
#include "kedge/train/checkpoint_store.h"

namespace kedge {

// The keys of `exp_manager`.
struct RunConfig {
  std::optional<std::string> explicit_log_dir;
  std::string exp_dir = "kedge_runs";
  std::string name = "run";
  std::optional<std::string> version;
  bool use_datetime_version = true;
  bool resume_if_exists = true;
  bool resume_ignore_no_checkpoint = true;
  std::optional<std::string> resume_from_checkpoint;
  std::optional<std::string> max_time_per_run;
  bool create_checkpoint_callback = true;
  CheckpointConfig checkpoint_callback_params;
  MetricsConfig metrics;

  void fields(auto&& field) {
    field("explicit_log_dir", explicit_log_dir, "the run's folder; null: EXP_DIR/NAME, and a version below it where nothing is resumed");
    field("exp_dir", exp_dir, "where runs without a folder of their own go");
    field("name", name, "their names there");
    field("version", version, "the level below; null: the time, or version_N");
    field("use_datetime_version", use_datetime_version, "name versions by the time; false: version_0, version_1, ...");
    field("resume_if_exists", resume_if_exists, "go on from the newest checkpoint in the folder");
    field("resume_ignore_no_checkpoint", resume_ignore_no_checkpoint, "start anew where there is none; false: an error");
    field("resume_from_checkpoint", resume_from_checkpoint, "a checkpoint to go on from where the folder has none");
    field("max_time_per_run", max_time_per_run, "DD:HH:MM:SS after which the run validates, saves and ends; null: no limit");
    field("create_checkpoint_callback", create_checkpoint_callback, "save checkpoints");
    field("checkpoint_callback_params", checkpoint_callback_params, "which checkpoints are kept, and their names");
    metrics.fields(field);
    field.ignored("create_preemption_callback", "SIGTERM and SIGUSR1 always save");
    field.ignored("resume_past_end", "a larger max_steps goes on with a complete run");
    field.ignored("log_step_timing", "times are always logged");
    field.ignored("step_timing_kwargs", "times are always logged");
    field.ignored("seconds_to_sleep", "ranks wait for each other");
    field.refused("create_early_stopping_callback", "not supported", {"false", "False"});
  }
};

// The folder by the configuration, made where it is not there. `now` names a version: "2026-01-31_12-00-00".
[[nodiscard]] Path open_run_folder(const RunConfig& config, std::string_view now);
[[nodiscard]] std::string time_as_version();

// Holds a run's folder for this process, so that no second run writes into it. A folder that is held is a UsageError; the system lets go of
// it when the process ends, however that happens.
class RunLock {
 public:
  explicit RunLock(const Path& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_;
};

// Is a run at work in the folder? Changes nothing there. False too where that cannot be found out.
[[nodiscard]] bool is_run_held(const Path& folder);

// The checkpoint to go on from, all of whose bytes are as they were saved, or none. A folder that holds checkpoints of a run that is not to
// be resumed is a UsageError.
[[nodiscard]] std::optional<Checkpoint> find_resume(const RunConfig& config, const Path& folder, const CheckpointStore& store);

// A checkpoint by its folder, which must be whole and undamaged; `key` opens the error.
[[nodiscard]] Checkpoint open_checkpoint(const Path& folder, std::string_view key);

}  // namespace kedge
