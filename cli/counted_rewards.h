#pragma once
// Rewards with a progress bar: how many responses of all policies have ended.
#include <chrono>
#include <string>

#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/metrics/progress.h"
#include "kedge/reward/reward.h"

namespace kedge::cli {

// Shows how many answers have ended; another source scores them.
class CountedRewards : public RewardSource {
 public:
  CountedRewards(RewardSource& rewards, int64_t num_policies, int64_t num_answers)
      : rewards_(rewards), num_policies_(num_policies), num_answers_(num_answers) {}
  ~CountedRewards() override { set_status_line(""); }
  CountedRewards(const CountedRewards&) = delete;
  CountedRewards& operator=(const CountedRewards&) = delete;

  void begin(std::string policy) {
    policy_ = std::move(policy);
    num_done_ = 0;
    show();
  }
  void end() { ++num_before_; }

  [[nodiscard]] std::future<std::vector<RowReward>> submit(Rollouts rollouts) override {
    num_done_ += std::ssize(rollouts);
    show();
    return rewards_.submit(std::move(rollouts));
  }

 private:
  void show() {
    if (!log_to_terminal()) return;
    const auto now = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    const int64_t done = num_before_ * num_answers_ + num_done_;
    meter_.update(done, now);
    set_status_line(format_progress_line({.title = str(policy_, ", answer"),
                                          .done = done,
                                          .total = num_policies_ * num_answers_,
                                          .elapsed_s = meter_.elapsed_s(now),
                                          .steps_per_s = meter_.steps_per_s()}));
  }

  RewardSource& rewards_;
  int64_t num_policies_, num_answers_;
  std::string policy_;
  int64_t num_before_ = 0, num_done_ = 0;  // policies, and answers of this one
  RateMeter meter_;
};

}  // namespace kedge::cli
