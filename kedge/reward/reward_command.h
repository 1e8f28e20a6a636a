#pragma once
// Rewards from a user's program: several processes, each of which reads rollouts as JSON lines and writes one line for each. A
// process that dies or hangs costs at most the row it was given. The lines are those of reward_protocol.h.
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "kedge/reward/reward.h"

namespace kedge {

struct RewardCommandConfig {
  std::string name = "command";           // its name in logs and errors: "reward.sources.judge"
  std::vector<std::string> command = {};  // a program and its arguments; one word alone is a line for /bin/sh
  int64_t workers = 1;                    // processes
  int64_t batch = 1;                      // maximum rows of one exchange; above 1 they are sent as lists
  int64_t retries = 1;                    // for a row whose process died
  double timeout_s = 60;                  // for each row of an exchange; a process that takes longer is killed
  double start_timeout_s = 60;            // extra time for the first exchange of a process
};

// Starts its processes at once. Those that write anything but replies to standard output are killed; what they write to standard
// error is logged. Rows still without a reward at the end get an error. Thread-safe.
class RewardCommand : public RewardSource {
 public:
  explicit RewardCommand(RewardCommandConfig config);
  ~RewardCommand() override;

  [[nodiscard]] std::future<std::vector<RowReward>> submit(Rollouts rollouts) override;

 private:
  class Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace kedge
