#pragma once
// The folder of a run: where it is, how long the run may take, and how an earlier run in it is resumed.
#include <optional>
#include <string>
#include <string_view>

#include "kedge/metrics/metrics_config.h"
#include "kedge/train/checkpoint/checkpoint_store.h"
#include "kedge/train/checkpoint/run_lock.h"

namespace kedge {

// The keys of `exp_manager` that training runs and critic servers share.
struct RunFolderConfig {
  std::optional<std::string> explicit_log_dir;
  std::optional<std::string> exp_dir;
  std::string name = "run";
  std::optional<std::string> version;
  bool use_datetime_version = true;
  bool resume_if_exists = true;
  bool resume_ignore_no_checkpoint = true;
  std::optional<std::string> resume_from_checkpoint;
  bool keep_folder = true;
  MetricsConfig metrics;

  [[nodiscard]] Path parent() const { return exp_dir.value_or("kedge_runs"); }
  void fields(auto&& field) {
    field("explicit_log_dir", explicit_log_dir,
          "the run's folder; null: EXP_DIR/NAME, plus a version folder if version is set or resume_if_exists=false");
    field("exp_dir", exp_dir, "parent folder of runs without explicit_log_dir; null: kedge_runs");
    field("name", name, "name of the run's folder in exp_dir");
    field("version", version, "name of the version folder; null: see use_datetime_version");
    field("use_datetime_version", use_datetime_version, "version folders are named by date and time; false: version_0, version_1, ...");
    field("resume_if_exists", resume_if_exists, "resume from the newest checkpoint in the folder");
    field("resume_ignore_no_checkpoint", resume_ignore_no_checkpoint, "start from scratch if there is no checkpoint; false: an error");
    field("resume_from_checkpoint", resume_from_checkpoint, "checkpoint to resume from if the folder has none");
    field("keep_folder", keep_folder,
          "false (or exp_manager=null): save nothing, and remove the run's folder, a temporary one, at the end");
    metrics.fields(field);
    field.ignored("create_preemption_callback", "SIGTERM and SIGUSR1 always save");
    field.ignored("resume_past_end", "a larger max_steps continues a finished run");
    field.ignored({"log_step_timing", "step_timing_kwargs"}, "times are always logged");
    field.ignored("seconds_to_sleep", "ranks synchronize without sleeping");
    field.refused("create_early_stopping_callback", "not supported", {"false", "False"});
  }
};

// All keys of a training run's `exp_manager`.
struct RunConfig : RunFolderConfig {
  std::optional<std::string> max_time_per_run;
  bool create_checkpoint_callback = true;
  CheckpointConfig checkpoint_callback_params;

  [[nodiscard]] bool saves() const { return keep_folder && create_checkpoint_callback; }
  [[nodiscard]] bool writes_model() const { return keep_folder && checkpoint_callback_params.save_nemo_on_train_end; }
  void fields(auto&& field) {
    RunFolderConfig::fields(field);
    field("max_time_per_run", max_time_per_run, "time limit DD:HH:MM:SS; the run then validates, saves and ends; null: no limit");
    field("create_checkpoint_callback", create_checkpoint_callback, "save checkpoints");
    field("checkpoint_callback_params", checkpoint_callback_params, "which checkpoints are kept, and how they are named");
  }
};

// The folder by the configuration, created if missing. `now` names a version: "2026-01-31_12-00-00".
[[nodiscard]] Path open_run_folder(const RunFolderConfig& config, std::string_view now);
[[nodiscard]] std::string time_as_version();

// Removes the folder of a run with keep_folder=false when the run ends.
class ScratchFolder {
 public:
  ScratchFolder(const RunFolderConfig& config, Path folder) : folder_(config.keep_folder ? Path() : std::move(folder)) {}
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

 private:
  Path folder_;  // empty: stays
};

// The checkpoint to resume from, with all bytes verified, or none if there are no checkpoints. A folder that holds
// checkpoints of a run that is not to be resumed is a UsageError, and so is one that holds checkpoints none of which can be used: a new run
// there would erase what is left of the old one. `verify` is asked about checkpoints in this folder only.
[[nodiscard]] std::optional<Checkpoint> find_resume(const RunConfig& config, const Path& folder, const CheckpointStore& store,
                                                    const CheckpointCheck& verify = verify_checkpoint);

// Metrics and samples of an earlier run, which a new run in this folder would erase, are renamed:
// metrics.jsonl.before-1, ...
void set_metrics_aside(const Path& folder);

// A checkpoint by its folder, which must be complete and undamaged; `key` opens the error.
[[nodiscard]] Checkpoint open_checkpoint(const Path& folder, std::string_view key);

}  // namespace kedge
