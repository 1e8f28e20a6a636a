#pragma once
// Settings of kedge eval: the prompts, sampling and rewards of a run, or from the flags if there is no run. Loads configurations, no
// weights.
#include <optional>
#include <string>
#include <vector>

#include "kedge/algo/online/online_plan.h"
#include "kedge/core/files.h"
#include "kedge/inspect/run_on_disk.h"
#include "kedge/train/training_config.h"

namespace kedge {

// Changes the process's current folder for as long as it lives, then restores it.
class InFolder {
 public:
  explicit InFolder(const Path& folder);
  ~InFolder();
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;

 private:
  Path before_;
};

// The settings of a run of kedge reinforce, rs or ppo, or of a hypothetical one. Paths of the run are relative to where it was started.
struct PolicySettings {
  OnlineSettings online;  // with all rewards
  ComputeConfig compute;
  Path start;  // the model folder it started from; absolute
  Path home;   // base of its relative paths, and where its reward commands run
};
[[nodiscard]] PolicySettings settings_of_run(const RunOnDisk& run, const std::vector<std::string>& overrides);
// Those of a model without a run: the trainers' defaults, and the overrides. Without rewards.
[[nodiscard]] PolicySettings settings_of_model(const Path& folder, const std::vector<std::string>& overrides);

// Is this key=value about rewards?
[[nodiscard]] bool is_about_rewards(const std::string& override);

// `reward` and `remote_rm` as the trainers have them, of a file, or of overrides alone.
[[nodiscard]] RewardConfig load_rewards(const std::optional<Path>& file, const std::vector<std::string>& overrides);

// UsageError if a reward is the critic's, which only serves the run that trains it.
void check_answerable(const RewardConfig& reward);
// A user is waiting: servers are waited for one minute, not as long as in a run, unless their wait_limit is set.
void limit_waiting(RewardConfig& reward);

// The settings with these prompts instead, or with those of validation alone. UsageError if there are none.
void choose_prompts(PolicySettings& settings, const std::optional<Path>& file, const std::string& of);

}  // namespace kedge
