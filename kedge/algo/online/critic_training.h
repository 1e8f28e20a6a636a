#pragma once
// The critic that is trained along with a policy: the two are saved together and resume together.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kedge/critic/critic_batch.h"
#include "kedge/critic/value_source.h"
#include "kedge/rollout/rollout_row.h"
#include "kedge/train/checkpoint/model_state.h"
#include "kedge/train/checkpoint/state_files.h"

namespace kedge {

// Not thread-safe. Every rank makes the same calls. `critic` must outlive it.
class CriticTraining {
 public:
  // `epochs` over the rows of a step.
  CriticTraining(ValueSource& critic, int64_t epochs) : critic_(critic), epochs_(epochs) {}

  // Before the first step of a process: the critic is restored to its save of that step; 0 is the start. An Error if policy and
  // critic do not match.
  void restore_once(int64_t step);
  // Starts to train on all rows that have a reward, and does not wait for the end.
  void train(const RolloutRows& rows);
  // A critic that only returns recorded values needs no warm-up.
  [[nodiscard]] bool learns() const { return critic_.learns(); }
  void finish() { critic_.finish_training(); }
  // Of the training before the one under way, which is over: the same in a run that was resumed in between. Rank 0's.
  [[nodiscard]] std::optional<double> last_loss() const { return critic_.last_loss(); }

  // Returns what `save_policy` returns; the checkpoint is complete once the critic has also been saved under this step.
  [[nodiscard]] FolderWriter save(StateSnapshot& state, int64_t step, const std::function<FolderWriter()>& save_policy) const;
  void note_saved(const std::vector<int64_t>& steps) { resumable_steps_ = steps; }
  void load(const StateFiles& state, int64_t step);

 private:
  ValueSource& critic_;
  int64_t epochs_;
  bool is_restored_ = false;
  std::vector<int64_t> resumable_steps_;    // of the checkpoints on disk, the newest last; none: only from the start
  std::optional<int64_t> train_calls_ = 0;  // since the start; none: a checkpoint from before they were counted
};

// All rows that have a reward, `epochs` times one after the other.
[[nodiscard]] CriticBatch critic_batch(const RolloutRows& rows, int64_t epochs);

}  // namespace kedge
