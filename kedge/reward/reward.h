#pragma once
// The seam to whatever says how good an answer is: a rule, a model here or on a server, a program.
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "kedge/reward/rollout.h"

namespace kedge {

// What one answer got, or why it got nothing. A reward that could not be had is never 0.
struct RowReward {
  double value = 0;
  std::string error = {};                                  // empty: `value` holds
  std::vector<std::pair<std::string, double>> parts = {};  // what it is made of, by name

  [[nodiscard]] bool failed() const { return !error.empty(); }
};

class RewardSource {
 public:
  virtual ~RewardSource() = default;

  // One for each rollout, in their order. Never waits; several may be under way, also from several threads. The future throws only what
  // ends the run; what is wrong with single rows is in their results. The source must outlive its futures.
  [[nodiscard]] virtual std::future<std::vector<RowReward>> submit(Rollouts rollouts) = 0;
};

}  // namespace kedge
