#pragma once
// An online training run from its settings to its last checkpoint: what PPO, REINFORCE and rejection sampling have in common.
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "kedge/algo/online/online_trainer.h"
#include "kedge/core/stop.h"
#include "kedge/reward/reward_set.h"
#include "kedge/run/job.h"
#include "kedge/run/online_setup.h"

namespace kedge {

// What a critic is opened for.
struct CriticPlace {
  const OnlineSetup& setup;
  Path run_folder;
  std::string run_id;
  std::optional<Checkpoint> start;  // that the run resumes from
  StopQuestion stop;                // a signal ends the wait for an unreachable server
};

// The critic of a run with everything it owns, local or on a server.
class CriticLink {
 public:
  virtual ~CriticLink() = default;
  [[nodiscard]] virtual ValueSource& critic() = 0;
  virtual void cancel() {}  // ends all waits for it
};

// An algorithm derives from it and implements its own parts.
class OnlineJob : public Job {
 public:
  [[nodiscard]] virtual const OnlineConfig& config() const = 0;
  [[nodiscard]] virtual const ComputeConfig& compute() const = 0;
  [[nodiscard]] virtual OnlineSettings settings() const = 0;  // a UsageError for a contradictory configuration
  [[nodiscard]] virtual std::unique_ptr<Algorithm> algorithm() const = 0;
  // UsageError if a checkpoint in the run's folder is damaged, or what the algorithm keeps beside it.
  virtual void verify(const Checkpoint& checkpoint) const;
  // With settings derived from the configuration and adapted to this machine.
  [[nodiscard]] std::unique_ptr<OnlineTrainer> make_trainer(OnlineParts parts, const OnlineSettings& settings) const;

  // Of an algorithm with a critic: opened before the policy's weights are read, so that problems with a server are reported early.
  [[nodiscard]] virtual bool has_critic() const { return false; }
  [[nodiscard]] virtual std::unique_ptr<CriticLink> open_critic(const CriticPlace& place) const;
  [[nodiscard]] virtual int64_t critic_bytes(const Mesh& mesh) const;  // maximum memory that it takes on the policy's device

  // Your own reward, for the source of that name: reward.sources.NAME.kind=custom.
  void add_reward(const std::string& name, std::shared_ptr<RewardSource> source) { rewards_[name] = std::move(source); }
  // Creates the sources that were added, and calls `other` for the rest.
  [[nodiscard]] RewardSourceMaker reward_maker(RewardSourceMaker other) const;

  int run(const RunOptions& options) override;
  [[nodiscard]] PlanReport plan(const PlanOptions& options) override;

 private:
  std::map<std::string, std::shared_ptr<RewardSource>> rewards_;
};

// One with this configuration.
template <typename Config>
class ConfiguredOnlineJob : public OnlineJob {
 public:
  [[nodiscard]] Section section() override { return describe(config_); }
  [[nodiscard]] const OnlineConfig& config() const override { return config_; }
  [[nodiscard]] const ComputeConfig& compute() const override { return config_.trainer; }
  [[nodiscard]] OnlineSettings settings() const override { return settings_of(config_); }
  [[nodiscard]] std::unique_ptr<Algorithm> algorithm() const override { return make_algorithm(config_); }

 protected:
  Config config_;
};

// By the name of its command. Null if no such command trains online.
[[nodiscard]] std::unique_ptr<OnlineJob> make_online_job(std::string_view name);

}  // namespace kedge
