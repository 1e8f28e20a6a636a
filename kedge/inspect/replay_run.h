#pragma once
// A run that is played again from what it left in its folder: its settings, its starting point, and a trainer that gets its answers from
// the records. Writes nothing, takes no lock, and sends nothing to servers unless told so.
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
  bool servers = false;     // rewards of servers are asked for again
  bool regenerate = false;  // the policy draws the answers again
};

// What of a run can be replayed, by steps. UsageError where there is nothing.
struct ReplayRange {
  std::vector<int64_t> recorded;  // steps that have a record, rising
  int64_t first = 0, last = 0;    // of all steps that are known to have been done
};
[[nodiscard]] ReplayRange range_of(const RunOnDisk& run);

// The folder of a run's records.
[[nodiscard]] Path records_of(const RunOnDisk& run);

// The hash of the weights before a step, by the records beside it or a checkpoint. None: nothing tells.
[[nodiscard]] std::optional<std::string> known_weights(const RunOnDisk& run, int64_t step);

// Files of the run's last start that are not here as they were then, each with what is wrong.
[[nodiscard]] std::vector<std::string> changed_inputs(const RunOnDisk& run);

// Relative paths in a run's settings are meant from where it was started. From here on so are this process's.
void enter_start_folder(const RunOnDisk& run);

// Steps from `from` on were done under other settings than those before it.
struct SettingsPart {
  int64_t from = 0;
  std::optional<Checkpoint> keeper = {};  // the checkpoint that kept the settings; none: they are the run's config.yaml
};
// At least one, rising. A run that goes on with other settings keeps the earlier ones in its checkpoints. The newest, those of config.yaml,
// are in the job's configuration then.
[[nodiscard]] std::vector<SettingsPart> settings_parts(const RunOnDisk& run, OnlineJob& job);

// Not thread-safe. Job and run must outlive it; the job's configuration is filled by it.
class ReplayRun {
 public:
  // Ready for the newest step at or before `step` that can be begun with: where a sound checkpoint stands, or the run's own start.
  ReplayRun(OnlineJob& job, const RunOnDisk& run, const ReplayChoice& choice, int64_t step);
  ~ReplayRun();
  ReplayRun(const ReplayRun&) = delete;
  ReplayRun& operator=(const ReplayRun&) = delete;

  [[nodiscard]] int64_t next_step() const { return next_; }
  [[nodiscard]] const std::string& start() const { return start_; }               // "the checkpoint of step 10"
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }  // how it is replayed
  [[nodiscard]] bool is_exact() const { return tolerance_ == 0; }

  // The next step. Closely: also its log-probabilities by passes of their own, its rewards, and what is drawn again.
  [[nodiscard]] StepComparison play(bool closely);

 private:
  [[nodiscard]] RewardSourceMaker reward_maker();
  void choose_tolerance();
  void tell_of_rewards();
  void begin(int64_t step);
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
