#include "kedge/algo/online/ppo.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "kedge/algo/online/policy_objective.h"
#include "kedge/algo/online/rollout_correction.h"
#include "kedge/algo/online/rollout_metrics.h"
#include "kedge/core/error.h"

namespace kedge {
namespace {

// Of all tokens of the rows that have a reward, one after the other.
struct StepTokens {
  std::vector<double> advantages, returns, values, distances;  // distances: of returns from values

  void add(const TokenAdvantages& learned, std::span<const float> expected) {
    advantages.insert(advantages.end(), learned.advantages.begin(), learned.advantages.end());
    returns.insert(returns.end(), learned.returns.begin(), learned.returns.end());
    values.insert(values.end(), expected.begin(), expected.end());
    for (size_t i = 0; i < expected.size(); ++i) distances.push_back(learned.returns[i] - double{expected[i]});
  }

  [[nodiscard]] Metrics metrics() const {
    Metrics metrics;
    const auto add = [&](const std::string& name, std::span<const double> numbers) {
      const Moments moments = moments_of(numbers);
      metrics.set(name + "_mean", moments.mean);
      metrics.set(name + "_std", std::sqrt(moments.variance));
    };
    add("advantages", advantages);
    add("returns", returns);
    add("values", values);
    double squares = 0;
    for (const double distance : distances) squares += distance * distance;
    if (!distances.empty()) metrics.set("values_loss", 0.5 * squares / static_cast<double>(distances.size()));
    const double spread = moments_of(returns).variance;
    if (spread > 0) metrics.set("values_explained", 1 - moments_of(distances).variance / spread);
    return metrics;
  }
};

double mean_of(std::span<const double> numbers) {
  return numbers.empty() ? 0 : std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

}  // namespace

PpoConfig::PpoConfig() {
  exp_manager = online_run("ppo", "rewards",
                           {"train_rollouts/init_policy_kl", "train_rollouts/values_explained", "train_rollouts/generation_length"});
}

CriticServerConfig critic_of(const LocalCriticConfig& config, const ComputeConfig& compute) {
  CriticServerConfig critic;
  static_cast<ComputeConfig&>(critic.trainer) = compute;
  static_cast<UpdateConfig&>(critic.trainer.ppo) = config;
  critic.trainer.ppo.combine_rm_and_critic_server = false;
  critic.trainer.ppo.max_steps = config.max_steps;
  critic.pretrained_checkpoint.restore_from_path = config.restore_from_path;
  critic.model = config.model;
  return critic;
}

RewardConfig reward_of(const PpoConfig& config) {
  RewardConfig reward = config.reward;
  const CriticServersConfig& servers = config.remote_critic_rm;
  const std::string key = "remote_critic_rm.combine_rm_and_critic_server";
  const bool combines = servers.combine_rm_and_critic_server && !config.local_critic;
  if (reward.sources.empty()) {
    check(!config.local_critic, "reward.sources: no reward is configured, and a local_critic returns none");
    RewardSourceConfig source = source_at(servers.reward_model, servers.pad_to_length, "remote_critic_rm.reward_model");
    if (combines) source = {.kind = RewardKind::critic};
    reward.sources.emplace(combines ? "critic" : "remote_rm", std::move(source));
  }
  const bool has_critic = std::any_of(reward.sources.begin(), reward.sources.end(),
                                      [](const auto& source) { return source.second.kind == RewardKind::critic; });
  check(has_critic || !combines, key,
        " is true, but none of reward.sources has the kind critic. If all rewards come from reward.sources, set ", key,
        "=false here and trainer.ppo.combine_rm_and_critic_server=false on the critic's server");
  check(!has_critic || combines, "reward.sources: one has the kind critic, but ",
        config.local_critic ? "a local_critic returns no rewards" : key + " is false");
  check_rewards(reward);
  return reward;
}

OnlineSettings settings_of(const PpoConfig& config) {
  const PpoLoopConfig& loop = config.trainer.loop;
  OnlineSettings settings = shared_settings(config);
  settings.epochs = loop.ppo_epochs;
  settings.wants_reference = loop.initial_policy_kl_penalty > 0 || loop.reference_policy_kl_penalty > 0;
  check_correction(loop, "trainer.ppo");
  settings.logprob_use = LogprobUse::step;
  settings.kl_estimator = loop.estimator();
  settings.critic_warmup_steps = loop.critic_warmup_steps;
  settings.critic_epochs = loop.critic_epochs;
  fill_batch_size(settings);
  if (!config.local_critic && config.remote_critic_rm.pad_to_length)
    settings.widths["remote_critic_rm.pad_to_length"] = *config.remote_critic_rm.pad_to_length;
  return settings;
}

namespace {

class Ppo final : public Algorithm {
 public:
  explicit Ppo(const PpoConfig& config)
      : loop_(config.trainer.loop), clip_(config.model.rollouts), entropy_bonus_(config.model.rollouts.entropy_bonus) {}

  [[nodiscard]] bool has_critic() const override { return true; }

  void score(OnlineStep& step) const override {
    add_kl(step.rows, loop_.estimator());
    StepTokens tokens;
    for (RolloutRow& row : step.rows) {
      row.trains = !row.reward.failed() && (row.rollout->finished || loop_.unfinished == Unfinished::keep);
      if (row.reward.failed()) continue;
      const std::vector<double> rewards =
          token_rewards(token_kls(row, loop_.estimator()), loop_.initial_policy_kl_penalty, row.reward.value);
      row.reward_with_kl = mean_of(rewards);
      const TokenAdvantages learned = gae(rewards, row.values, {loop_.discount_factor, loop_.gae_lambda});
      row.returns.assign(learned.returns.begin(), learned.returns.end());
      tokens.add(learned, row.values);
    }
    step.metrics = tokens.metrics();
    step.metrics.merge(add_correction(step.rows, loop_));
    if (loop_.normalize_advantages) whiten(tokens.advantages, moments_of(tokens.advantages));
    auto advantage = tokens.advantages.begin();
    for (RolloutRow& row : step.rows) {
      if (row.reward.failed()) continue;
      const auto end = advantage + row.rollout->response_length();
      row.advantages.assign(advantage, end);
      row.advantage = mean_of({advantage, end});
      advantage = end;
    }
  }

  [[nodiscard]] TokenObjective objective() const override {
    return policy_objective({.clip_min = clip_.clip_min(),
                             .clip_max = clip_.clip_max(),
                             .clip_c = clip_.ratio_clip_c,
                             .kl = loop_,
                             .entropy_bonus = entropy_bonus_,
                             .prefix = "ppo_"},
                            loop_.loss_norm);
  }

  [[nodiscard]] Metrics metrics(const OnlineStep& step) const override {
    Metrics metrics = kl_metrics(step.rows);
    metrics.merge(step.metrics);
    return metrics;
  }

 private:
  PpoLoopConfig loop_;
  ClipConfig clip_;
  double entropy_bonus_;
};

}  // namespace

std::unique_ptr<Algorithm> make_algorithm(const PpoConfig& config) { return std::make_unique<Ppo>(config); }

}  // namespace kedge
