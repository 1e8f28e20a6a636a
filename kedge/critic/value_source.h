#pragma once
// The interface to a critic, local or on a server: values of rollouts, training, and saves that are tied to the actor's.
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
  std::vector<RowReward> rewards = {};  // of a critic with a reward model; else empty
};

// Where several ranks share one critic, every rank makes the same calls but for values(). Of a critic on a server only rank 0's change it;
// one that the ranks hold together needs them all.
class ValueSource {
 public:
  virtual ~ValueSource() = default;

  // False for one that only returns recorded values: it needs no warm-up rounds.
  [[nodiscard]] virtual bool learns() const { return true; }

  // Do ranks hold it together? Then all calls but values() are collective, and none is made on another thread.
  [[nodiscard]] virtual bool is_collective() const { return false; }

  // Never waits. The values reflect every train() before this call.
  [[nodiscard]] virtual std::future<RolloutValues> values(Rollouts rollouts) = 0;

  // Before values are waited for: a collective critic computes them now, all ranks at the same time.
  virtual void compute_values() {}

  // Starts to train, and does not wait for the end. An error of the training before it is thrown here.
  virtual void train(CriticBatch batch) = 0;
  // Waits for the last training, if one is under way. What went wrong is thrown.
  virtual void finish_training() = 0;

  // Starts to save, after all training that was started and before any later one. When the future is ready, also on another thread, the
  // critic can be restored to the actor's step even if this process and the critic's die; it throws what went
  // wrong. Training that failed before it fails the save as well: nothing is saved. The saves of
  // `resumable_steps`, ascending, which the actor could resume from if it died now, are kept.
  [[nodiscard]] virtual std::shared_future<void> save(int64_t actor_step, const std::vector<int64_t>& resumable_steps) = 0;
  // Restores the save of that step; 0: the initial critic. Later training is lost. Returns how many calls to train() are then in
  // effect, if known.
  virtual std::optional<int64_t> restore(int64_t actor_step) = 0;

  // Of the last training that finish_training() or the next train() waited for, or that the restored save holds. None: not known.
  [[nodiscard]] std::optional<double> last_loss() const { return last_loss_; }

 protected:
  std::optional<double> last_loss_;
};

}  // namespace kedge
