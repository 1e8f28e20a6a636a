#pragma once
// Requests and collects values of answers: with the rewards, as answers end, while others are still being generated. A critic
// that also returns rewards is called once for both. Independent of losses.
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "kedge/critic/value_source.h"
#include "kedge/dist/group.h"
#include "kedge/reward/reward.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge {

// ask() and the rewards may be used from several threads. `critic` must outlive it.
class ValueCollector {
 public:
  explicit ValueCollector(ValueSource& critic) : critic_(critic) {}

  [[nodiscard]] ValueSource& critic() { return critic_; }

  // Never waits.
  void ask(Rollouts rollouts);
  // Waits, and fills `values` of all rows; each rank requested those that it generated. If none were requested, the
  // ranks share them.
  void take(const Group& group, RolloutRows& rows);

  // The rewards that come with the values. They are those of ask(); for other rows, or a second time, the
  // critic is called again. The collector must outlive it.
  [[nodiscard]] std::unique_ptr<RewardSource> rewards();

 private:
  class Rewards;
  // One answer among those of a call.
  struct Pending {
    std::shared_ptr<const Rollout> rollout;
    std::shared_future<RolloutValues> reply;
    size_t place = 0;
    bool is_rewarded = false;  // its reward was returned
  };
  [[nodiscard]] std::vector<Pending> ask_critic(const Rollouts& rollouts);
  [[nodiscard]] std::vector<Pending> rewards_of(const Rollouts& rollouts);

  ValueSource& critic_;
  std::mutex mutex_;  // of the critic's values() and of what follows
  std::map<const Rollout*, Pending> pending_;
};

}  // namespace kedge
