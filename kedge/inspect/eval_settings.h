#pragma once
// How kedge eval asks: the prompts, sampling and rewards of a run, or of the flags where no run says them. Loads configurations, no
// weights.
#include <optional>
#include <string>
#include <vector>

#include "kedge/algo/online/online_plan.h"
#include "kedge/core/files.h"
#include "kedge/inspect/run_on_disk.h"
#include "kedge/train/training_config.h"

namespace kedge {

// The process's current folder is another one, for as long as it lives; back it comes.
class InFolder {
 public:
  explicit InFolder(const Path& folder);
  ~InFolder();
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;

 private:
  Path before_;
};

// What a run of kedge reinforce, rs or ppo goes by, or would. Paths of the run are relative to where it was started.
struct PolicySettings {
  OnlineSettings online;  // with all rewards
  ComputeConfig compute;
  Path start;  // the model folder it began with; absolute
  Path home;   // where its relative paths begin, and its reward's commands run
};
[[nodiscard]] PolicySettings settings_of_run(const RunOnDisk& run, const std::vector<std::string>& overrides);
// Those of a model that belongs to no run: the trainers' defaults, and the overrides. Without rewards.
[[nodiscard]] PolicySettings settings_of_model(const Path& folder, const std::vector<std::string>& overrides);

// Is this key=value about rewards?
[[nodiscard]] bool is_about_rewards(const std::string& override);

// `reward` and `remote_rm` as the trainers have them, of a file, or of overrides alone.
[[nodiscard]] RewardConfig load_rewards(const std::optional<Path>& file, const std::vector<std::string>& overrides);

// UsageError where a reward is the critic's, which answers only to the run that trains it.
void check_answerable(const RewardConfig& reward);
// Somebody waits at the terminal: servers are waited for a minute, not as long as a run would, unless their wait_limit says otherwise.
void limit_waiting(RewardConfig& reward);

// The settings with these prompts instead, or with those of validation alone. UsageError where there are none.
void choose_prompts(PolicySettings& settings, const std::optional<Path>& file, const std::string& of);

}  // namespace kedge
