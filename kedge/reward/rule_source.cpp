#include "kedge/reward/rule_source.h"

#include <memory>

namespace kedge {

std::future<std::vector<RowReward>> RuleSource::submit(Rollouts rollouts) {
  // Shared, because a task must be copyable.
  auto promise = std::make_shared<std::promise<std::vector<RowReward>>>();
  auto future = promise->get_future();
  worker_.post([this, promise = std::move(promise), rollouts = std::move(rollouts)] {
    try {
      std::vector<RowReward> rewards;
      for (const auto& rollout : rollouts) rewards.push_back(rule_(*rollout));
      promise->set_value(std::move(rewards));
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  });
  return future;
}

}  // namespace kedge
