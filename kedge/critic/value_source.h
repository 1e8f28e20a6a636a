#pragma once
// The seam to a critic, here or on a server: values of rollouts, training, and saves that are tied to the actor's.
#include <cstdint>
#include <future>
#include <optional>
#include <vector>

#include "kedge/critic/critic_batch.h"
#include "kedge/reward/reward.h"

namespace kedge {

struct RolloutValues {
  // For every rollout one value for each of its ids but the last: what is expected after that id has been read.
  std::vector<std::vector<float>> values = {};
  std::vector<RowReward> rewards = {};  // of a critic with a reward model beside it; else empty
};

// Where several ranks share one critic, every rank makes the same calls but for values(), and rank 0's are those that change it.
class ValueSource {
 public:
  virtual ~ValueSource() = default;

  // One that does not, and only says what it is known to have said, needs no rounds to warm up.
  [[nodiscard]] virtual bool learns() const { return true; }

  // Never waits. The values are those of a critic that every train() before this call has changed.
  [[nodiscard]] virtual std::future<RolloutValues> values(Rollouts rollouts) = 0;

  // Begins to train, and does not wait for the end. An error of the training before it is thrown here.
  virtual void train(CriticBatch batch) = 0;
  // Waits for the last training, if one is under way. What went wrong is thrown.
  virtual void finish_training() = 0;

  // Begins to save, after all training that was begun and before any that is to come. When the future is ready, also on another thread, the
  // critic as it is now can be had again under the actor's step, although this process and the critic's should die; what went wrong it
  // throws. Training that failed before it fails the save as well: nothing is saved. The save of `resumable_step`, which the actor would
  // resume from if it died now, is kept.
  [[nodiscard]] virtual std::shared_future<void> save(int64_t actor_step, int64_t resumable_step) = 0;
  // As it was saved under that step; 0: as it was at the beginning. Everything trained since is gone. How many calls to train() are then in
  // effect, where that is known.
  virtual std::optional<int64_t> restore(int64_t actor_step) = 0;

  // Of the last training that finish_training() or the next train() waited for, or that the restored save holds. None: not known.
  [[nodiscard]] virtual std::optional<double> last_loss() const { return std::nullopt; }
};

}  // namespace kedge
