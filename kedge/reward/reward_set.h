#pragma once
// All sources of a run's rewards as one: each row goes to those it is routed to, and gets the weighted sum of their rewards, with every
// component by name. Independent of HTTP and models: those sources are created by a given function.
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/rare_log.h"
#include "kedge/core/serial_worker.h"
#include "kedge/reward/reward_config.h"

namespace kedge {

// Creates a source of the kinds server, http and model; null if it cannot. `key` names it: "reward.sources.helpful".
using RewardSourceMaker = std::function<std::unique_ptr<RewardSource>(const std::string& key, const RewardSourceConfig& config)>;

// Why a row of the data, which may be null, ends the run: no source is routed to it. None if one is; a watched one does not count.
[[nodiscard]] std::optional<std::string> nobody_takes(const RewardConfig& config, const Json* row);

// The parts of a row's reward are "NAME" for a source, after its own clip and before its weight, "NAME/PART" for its components,
// and "watch/NAME" for a watched one. The value is the weighted sum, standardised, scaled and clipped. A row that a source failed at,
// also after the retries, has an error; with `on_failure: fail` the future throws it. A row that no source is routed to ends the run.
// Thread-safe. Rows still without a reward at the end get an error.
class RewardSet : public RewardSource {
 public:
  explicit RewardSet(RewardConfig config, const RewardSourceMaker& make_other = {});
  ~RewardSet() override;
  RewardSet(const RewardSet&) = delete;
  RewardSet& operator=(const RewardSet&) = delete;

  [[nodiscard]] std::future<std::vector<RowReward>> submit(Rollouts rollouts) override;

 private:
  // One source as it is used.
  struct Member {
    std::string key;    // "reward.sources.helpful"
    std::string label;  // of its part: "helpful", "watch/helpful"
    RewardSourceConfig config;
    bool is_watched = false;
    bool is_rule = false;  // deterministic, and names the prompt in its errors
    std::unique_ptr<RewardSource> source = nullptr;
  };
  // The request to one member.
  struct Asked {
    const Member* member = nullptr;
    std::vector<size_t> rows = {};
    std::future<std::vector<RowReward>> reply = {};
  };
  struct Job;

  void add_member(std::string key, std::string label, const RewardSourceConfig& config, const RewardSourceMaker& make_other);
  void finish(Job& job);
  [[nodiscard]] std::vector<RowReward> rewards_of(Asked& asked, const Rollouts& rollouts);
  [[nodiscard]] std::vector<RowReward> ask_again(const Member& member, Rollouts rollouts);
  [[nodiscard]] double trained_on(double sum) const;

  RewardConfig config_;
  std::vector<Member> members_;
  RareLog failures_;  // rows arrive in many small groups: not one line for each
  std::mutex mutex_;  // of closing_, and held while a row is retried
  bool closing_ = false;
  SerialWorker worker_;  // last: its tasks use all of the above
};

}  // namespace kedge
