#pragma once
// A replay of a run from its folder: its settings, its starting point, and a trainer that gets its answers from
// the records. Writes nothing, takes no lock, and sends nothing to servers unless requested.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kedge/inspect/run_on_disk.h"
#include "kedge/reward/reward_set.h"
#include "kedge/rollout/recorded_sources.h"
#include "kedge/rollout/replay_store.h"
#include "kedge/rollout/value_collector.h"
#include "kedge/run/online_job.h"

namespace kedge {

struct ReplayChoice {
  bool servers = false;     // rewards are requested from servers again
  bool regenerate = false;  // the policy samples the answers again
};

// What of a run can be replayed, by steps. UsageError if there is nothing.
struct ReplayRange {
  std::vector<int64_t> recorded;  // steps that have a record, rising
  int64_t first = 0, last = 0;    // of all steps known to be complete
};
[[nodiscard]] ReplayRange range_of(const RunOnDisk& run);

// The folder of a run's records.
[[nodiscard]] Path records_of(const RunOnDisk& run);

// The hash of the weights before a step, from the records before and after it or a checkpoint. None: not known.
[[nodiscard]] std::optional<std::string> known_weights(const RunOnDisk& run, int64_t step);

// Input files of the run's last start that are missing or changed, each with what is wrong.
[[nodiscard]] std::vector<std::string> changed_inputs(const RunOnDisk& run);

// Relative paths in a run's settings are relative to where it was started. This changes the process to that folder.
void enter_start_folder(const RunOnDisk& run);

// Steps from `from` on were done under other settings than those before it.
struct SettingsPart {
  int64_t from = 0;
  std::optional<Checkpoint> keeper = {};  // the checkpoint that kept the settings; none: they are the run's config.yaml
};
// At least one, rising. A run resumed with other settings keeps the earlier ones in its checkpoints. The newest, those of config.yaml,
// are in the job's configuration then.
[[nodiscard]] std::vector<SettingsPart> settings_parts(const RunOnDisk& run, OnlineJob& job);

// Not thread-safe. Job and run must outlive it; the job's configuration is filled by it.
class ReplayRun {
 public:
  // Ready for the newest step at or before `step` from which a replay can start: a valid checkpoint, or the run's own start.
  ReplayRun(OnlineJob& job, const RunOnDisk& run, const ReplayChoice& choice, int64_t step);
  ~ReplayRun();
  ReplayRun(const ReplayRun&) = delete;
  ReplayRun& operator=(const ReplayRun&) = delete;

  [[nodiscard]] int64_t next_step() const { return next_; }
  [[nodiscard]] const std::string& start() const { return start_; }               // "the checkpoint of step 10"
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }  // how it is replayed
  [[nodiscard]] bool is_exact() const { return tolerance_ == 0; }

  // The next step. Closely: also its log-probabilities in separate passes, its rewards, and new samples.
  [[nodiscard]] StepComparison play(bool closely);

 private:
  [[nodiscard]] RewardSourceMaker reward_maker();
  void choose_tolerance();
  void tell_of_rewards();
  [[nodiscard]] std::optional<Checkpoint> find_checkpoint(int64_t step);
  void add_logprobs(RolloutRows& rows);

  const OnlineJob& job_;
  const RunOnDisk& run_;
  ReplayChoice choice_;
  std::vector<std::string> notes_;
  OnlineSetup setup_;
  double tolerance_ = 0;
  std::optional<ReplayStore> store_;
  RecordedCritic critic_;
  ValueCollector collector_;
  std::unique_ptr<RewardSet> rewards_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<OnlineTrainer> trainer_;
  std::string start_;
  int64_t next_ = 0;
};

}  // namespace kedge
