#pragma once
// A critic in this process, on its own thread, so that it trains while the policy does. One that several ranks hold together works on the
// caller's thread: its collective calls must come in the same order as the policy's on every rank. Independent of requests.
#include <future>
#include <vector>

#include "kedge/core/serial_worker.h"
#include "kedge/critic/critic.h"
#include "kedge/critic/value_source.h"

namespace kedge {

// Not thread-safe, but for the futures. `critic` must outlive it, and must not be used elsewhere meanwhile.
class LocalCritic : public ValueSource {
 public:
  explicit LocalCritic(Critic& critic) : critic_(critic) {}

  [[nodiscard]] bool is_collective() const override { return critic_.is_of_ranks(); }
  [[nodiscard]] std::future<RolloutValues> values(Rollouts rollouts) override;
  void compute_values() override;
  void train(CriticBatch batch) override;
  void finish_training() override;
  [[nodiscard]] std::shared_future<void> save(int64_t actor_step, const std::vector<int64_t>& resumable_steps) override;
  std::optional<int64_t> restore(int64_t actor_step) override;

 private:
  template <typename Result>
  [[nodiscard]] std::future<Result> later(std::function<Result()> task);
  [[nodiscard]] std::vector<RolloutValues> values_of(std::span<const Rollouts> calls) const;

  Critic& critic_;
  std::shared_future<double> training_;  // its loss
  // What ranks were asked for and have not computed yet.
  std::vector<Rollouts> asked_;
  std::vector<std::promise<RolloutValues>> promised_;
  SerialWorker worker_;  // one call after the other, as they were made
};

}  // namespace kedge
