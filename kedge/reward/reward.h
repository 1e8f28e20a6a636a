#pragma once
// The interface of reward sources: a rule, a model here or on a server, a program.
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "kedge/reward/rollout.h"

namespace kedge {

// The reward of one answer, or why there is none. A failed reward is never 0.
struct RowReward {
  double value = 0;
  std::string error = {};                                  // empty: `value` holds
  std::vector<std::pair<std::string, double>> parts = {};  // its components, by name

  [[nodiscard]] bool failed() const { return !error.empty(); }
};

class RewardSource {
 public:
  virtual ~RewardSource() = default;

  // One for each rollout, in their order. Never waits; several calls may be pending, also from several threads. The future throws only what
  // ends the run; errors of single rows are in their results. The source must outlive its futures.
  [[nodiscard]] virtual std::future<std::vector<RowReward>> submit(Rollouts rollouts) = 0;
};

}  // namespace kedge
