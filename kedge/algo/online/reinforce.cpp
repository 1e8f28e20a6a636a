#include "kedge/algo/online/reinforce.h"

#include "kedge/algo/online/policy_losses.h"
#include "kedge/algo/online/rollout_metrics.h"
#include "kedge/core/error.h"

namespace kedge {

ReinforceConfig::ReinforceConfig() {
  exp_manager = online_run("reinforce", "rewards", {"train_rollouts/init_policy_kl", "train_rollouts/generation_length"});
}

OnlineSettings settings_of(const ReinforceConfig& config) {
  const ReinforceLoopConfig& loop = config.trainer.loop;
  OnlineSettings settings = shared_settings(config);
  settings.samples_per_prompt = settings.rows_per_prompt = loop.num_rollouts_per_prompt;
  settings.epochs = loop.reinforce_epochs;
  settings.wants_reference = loop.initial_policy_kl_penalty > 0;
  settings.wants_logprobs = settings.wants_reference || loop.ratio == RatioKind::clip;
  settings.kl_estimator = loop.estimator();
  settings.names_reward = config.names_reward();
  settings.drops_unfinished = loop.unfinished == Unfinished::drop;
  return settings;
}

namespace {

class Reinforce final : public Algorithm {
 public:
  explicit Reinforce(const ReinforceConfig& config) : config_(config.trainer.loop) {}

  void score(OnlineStep& step) const override {
    add_kl(step.rows, config_.estimator());
    std::vector<ScoredAnswer> answers;
    for (RolloutRow& row : step.rows) {
      const double kl = config_.kl_reduce == KlReduce::mean ? row.kl_mean : row.kl_sum;
      row.reward_with_kl = row.reward.value - config_.initial_policy_kl_penalty * kl;
      row.trains = !row.reward.failed() && (row.rollout->finished || config_.unfinished == Unfinished::keep);
      answers.push_back({.slot = row.slot, .reward = row.reward_with_kl, .counts = row.trains});
    }
    const std::vector<AnswerAdvantage> advantages = answer_advantages(answers, config_.baseline);
    for (size_t i = 0; i < step.rows.size(); ++i) {
      step.rows[i].baseline = advantages[i].baseline;
      step.rows[i].advantage = advantages[i].advantage;
    }
  }

  [[nodiscard]] TokenObjective objective() const override {
    return {.norm = config_.loss_norm, .loss = [this](const PassTokens& tokens) -> PassLoss {
              if (config_.ratio == RatioKind::none) return reinforce_terms(tokens.logprobs, tokens.advantages);
              return clipped_terms(tokens.logprobs, tokens.previous, tokens.advantages, config_.ratio_eps).losses;
            }};
  }

  [[nodiscard]] Metrics metrics(const OnlineStep& step) const override {
    Metrics metrics = kl_metrics(step.rows);
    double baselines = 0, count = 0;
    for (const RolloutRow& row : step.rows) {
      if (row.reward.failed()) continue;
      baselines += row.baseline;
      ++count;
    }
    if (count > 0) metrics.set("baseline_mean", baselines / count);
    return metrics;
  }

  [[nodiscard]] std::vector<std::string> hints() const override {
    std::vector<std::string> hints;
    if (config_.num_rollouts_per_prompt == 1 && config_.baseline != Baseline::batch_mean && config_.baseline != Baseline::none)
      hints.emplace_back(
          "trainer.reinforce.num_rollouts_per_prompt: a single answer is its own baseline, so nothing is learned; "
          "trainer.reinforce.baseline=batch_mean compares it with the answers to other prompts");
    if (config_.baseline == Baseline::group_norm && config_.initial_policy_kl_penalty > 0)
      hints.push_back(
          str("trainer.reinforce.baseline=group_norm divides by the group's deviation, and the KL penalty is part of what it normalises: "
              "where a prompt's responses all get the same reward, their advantages come from the penalty alone and pull to the reference "
              "at full strength, however small initial_policy_kl_penalty (",
              config_.initial_policy_kl_penalty,
              ") is; 0 leaves such groups out, and baseline=rloo or group_mean keeps the penalty in proportion"));
    return hints;
  }

 private:
  ReinforceLoopConfig config_;
};

}  // namespace

std::unique_ptr<Algorithm> make_algorithm(const ReinforceConfig& config) { return std::make_unique<Reinforce>(config); }

}  // namespace kedge
