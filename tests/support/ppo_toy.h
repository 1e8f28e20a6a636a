#pragma once
// PPO in small: the online toy with a critic in this process, in a folder of its own.
#include <memory>

#include "kedge/critic/local_critic.h"

#include "tests/support/online_toy.h"
#include "tests/support/toy_critic.h"

namespace kedge::testing {

struct PpoToy : OnlineToy {
  MetricsLog critic_log{true};
  std::unique_ptr<Critic> critic;
  std::unique_ptr<LocalCritic> source;
  std::unique_ptr<ValueCollector> collector;

  // `critic_folder` empty: one of the toy's own.
  explicit PpoToy(std::unique_ptr<Model> network = byte_model(), const Path& critic_folder = {}) : OnlineToy(std::move(network)) {
    ppo.reward.sources["toy"] = {.kind = RewardKind::length};  // of the settings alone: the toy's function judges
    ppo.remote_critic_rm.combine_rm_and_critic_server = false;
    const Path folder = critic_folder.empty() ? temp / "critic" : critic_folder;
    const auto start = [] {
      CriticOptions options = toy_critic_options();
      options.optim.sched.warmup_steps = 0;
      return std::make_unique<CriticModel>(byte_model({HeadKind::score, 1, false}), options);
    };
    critic = std::make_unique<Critic>(CriticParts{folder, start, critic_log});
    source = std::make_unique<LocalCritic>(*critic);
    collector = std::make_unique<ValueCollector>(*source);
  }

  [[nodiscard]] std::unique_ptr<PPOTrainer> ppo_trainer(const Path& folder = {}) {
    OnlineParts with_critic = parts(folder);
    with_critic.values = collector.get();
    return std::make_unique<PPOTrainer>(std::move(with_critic), ppo);
  }
  [[nodiscard]] Tensor weights() const { return model->trained().flat_master().detach(); }
  [[nodiscard]] Tensor critic_weights() const { return weights_of(critic->model()).detach(); }
};

}  // namespace kedge::testing
