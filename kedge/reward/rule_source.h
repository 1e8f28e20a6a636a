#pragma once
// A rule as a source of rewards: it runs on its own thread, so that callers need not wait.
#include "kedge/core/serial_worker.h"
#include "kedge/reward/reward_rules.h"

namespace kedge {

class RuleSource : public RewardSource {
 public:
  explicit RuleSource(RewardRule rule) : rule_(std::move(rule)) {}

  [[nodiscard]] std::future<std::vector<RowReward>> submit(Rollouts rollouts) override;

 private:
  RewardRule rule_;
  SerialWorker worker_;  // last: its tasks use the rule
};

}  // namespace kedge
