#pragma once
// Replacements for the servers of a run: a critic and a source of rewards that return the run's records. Nothing is sent.
#include <functional>
#include <string>

#include "kedge/critic/value_source.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge {

// The recorded row of an answer; null if there is none.
using FindRecorded = std::function<const RolloutRow*(const Rollout& rollout)>;

// Learns nothing and saves nothing. An answer without a record is a UsageError.
class RecordedCritic final : public ValueSource {
 public:
  explicit RecordedCritic(FindRecorded find) : find_(std::move(find)) {}

  [[nodiscard]] bool learns() const override { return false; }
  [[nodiscard]] std::future<RolloutValues> values(Rollouts rollouts) override;
  void train(CriticBatch /*batch*/) override {}
  void finish_training() override {}
  [[nodiscard]] std::shared_future<void> save(int64_t actor_step, const std::vector<int64_t>& resumable_steps) override;
  std::optional<int64_t> restore(int64_t /*actor_step*/) override { return std::nullopt; }

 private:
  FindRecorded find_;
};

// The rewards of one source, from its parts of the recorded rewards.
class RecordedReward final : public RewardSource {
 public:
  // `key` opens errors: "reward.sources.helpful". `label` is its part's name: "helpful", "watch/helpful".
  RecordedReward(FindRecorded find, std::string key, std::string label)
      : find_(std::move(find)), key_(std::move(key)), label_(std::move(label)) {}

  [[nodiscard]] std::future<std::vector<RowReward>> submit(Rollouts rollouts) override;

 private:
  [[nodiscard]] RowReward reward_of(const Rollout& rollout) const;

  FindRecorded find_;
  std::string key_, label_;
};

}  // namespace kedge
