#include "kedge/algo/online/policy_gradient.h"

#include <utility>

#include "kedge/algo/online/dynamic_sampling.h"
#include "kedge/algo/online/policy_objective.h"
#include "kedge/algo/online/rollout_correction.h"
#include "kedge/algo/online/rollout_metrics.h"
#include "kedge/core/error.h"

namespace kedge {

namespace {

LogprobUse logprob_use(const PolicyGradientLoop& loop) {
  if (loop.rollout_correction != RolloutCorrection::none) return LogprobUse::step;
  if (loop.initial_policy_kl_penalty > 0) return compares_prompts(loop.baseline) ? LogprobUse::step : LogprobUse::prompt;
  return loop.wants_reference() || loop.ratio != RatioKind::none ? LogprobUse::loss : LogprobUse::none;
}

}  // namespace

OnlineSettings policy_gradient_settings(OnlineSettings settings, const PolicyGradientLoop& loop) {
  settings.samples_per_prompt = settings.rows_per_prompt = loop.num_rollouts_per_prompt;
  settings.epochs = loop.epochs;
  settings.wants_reference = loop.wants_reference();
  settings.logprob_use = logprob_use(loop);
  settings.kl_estimator = loop.logged_kl();
  settings.drops_unfinished = loop.unfinished == Unfinished::drop;
  settings.max_batches = loop.use_dynamic_sampling ? loop.dynamic_sampling_max_batches : 1;
  check_correction(loop, "trainer." + settings.name);
  check(loop.rollout_correction == RolloutCorrection::none || settings.rollouts.logprobs != LogprobSource::engine, "trainer.",
        settings.name, ".rollout_correction: compares training's log-probabilities with the engine's, and model.", settings.name,
        ".logprobs=engine takes the engine's for both; expected logprobs=auto or trainer");
  fill_batch_size(settings);
  return settings;
}

namespace {

class PolicyGradient final : public Algorithm {
 public:
  PolicyGradient(const PolicyGradientLoop& config, double entropy_bonus, std::string name)
      : config_(config), entropy_bonus_(entropy_bonus), name_(std::move(name)) {}

  void score(OnlineStep& step) const override {
    add_kl(step.rows, config_.logged_kl());
    // batch_norm learns from penalties of tokens, which add up.
    const bool sums = config_.kl_reduce == KlReduce::sum || config_.baseline == Baseline::batch_norm;
    std::vector<ScoredAnswer> answers;
    for (RolloutRow& row : step.rows) {
      const double kl = sums ? row.kl_sum : row.kl_mean;
      row.reward_with_kl = row.reward.value - config_.initial_policy_kl_penalty * kl;
      row.trains = !row.reward.failed() && (row.rollout->finished || config_.unfinished == Unfinished::keep);
    }
    if (config_.use_dynamic_sampling) leave_out_filling(step.rows);
    for (const RolloutRow& row : step.rows) answers.push_back({.slot = row.slot, .reward = row.reward_with_kl, .counts = row.trains});
    const std::vector<AnswerAdvantage> advantages = answer_advantages(answers, config_.baseline);
    for (size_t i = 0; i < step.rows.size(); ++i) {
      step.rows[i].baseline = advantages[i].baseline;
      step.rows[i].advantage = advantages[i].advantage;
    }
    if (config_.baseline == Baseline::batch_norm) norm_tokens(step.rows);
    step.metrics = add_correction(step.rows, config_);
  }

  [[nodiscard]] TokenObjective objective() const override {
    return policy_objective({.ratio = config_.ratio,
                             .level = config_.sequence_level_importance_ratios,
                             .clip_min = config_.clip_min(),
                             .clip_max = config_.clip_max(),
                             .clip_c = config_.ratio_clip_c,
                             .cispo_max = config_.cispo_ratio_max,
                             .kl = config_,
                             .entropy_bonus = entropy_bonus_,
                             .reports = config_.ratio != RatioKind::none || config_.reference_policy_kl_penalty > 0 || entropy_bonus_ > 0},
                            config_.loss_norm);
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
    metrics.merge(step.metrics);
    return metrics;
  }

  [[nodiscard]] std::vector<std::string> hints() const override {
    std::vector<std::string> hints;
    const bool compares_groups = config_.baseline != Baseline::batch_mean && config_.baseline != Baseline::batch_norm;
    const std::string section = "trainer." + name_;
    if (config_.num_rollouts_per_prompt == 1 && compares_groups && config_.baseline != Baseline::none)
      hints.emplace_back(str(section, ".num_rollouts_per_prompt: a single answer is its own baseline, so nothing is learned; ", section,
                             ".baseline=batch_mean compares it with the answers to other prompts"));
    if (config_.num_rollouts_per_prompt == 1 && config_.use_dynamic_sampling)
      hints.emplace_back(str(section, ".use_dynamic_sampling: a single response has no other to differ from, so nothing is learned"));
    if (config_.baseline == Baseline::group_norm && config_.initial_policy_kl_penalty > 0)
      hints.push_back(
          str(section,
              ".baseline=group_norm divides by the group's deviation, and the KL penalty is part of what it normalises: "
              "where a prompt's responses all get the same reward, their advantages come from the penalty alone and pull to the reference "
              "at full strength, however small initial_policy_kl_penalty (",
              config_.initial_policy_kl_penalty,
              ") is; 0 leaves such groups out, and baseline=rloo or group_mean keeps the penalty in proportion"));
    for (const std::string& key : unused_limits())
      hints.push_back(str(section, ".", key, ": has no effect with ",
                          config_.ratio == RatioKind::cispo ? "ratio=cispo, whose limit is cispo_ratio_max" : "ratio=none"));
    return hints;
  }

 private:
  // Keys that were set although nothing reads them.
  [[nodiscard]] std::vector<std::string> unused_limits() const {
    std::vector<std::string> unused;
    if (config_.ratio == RatioKind::clip) return unused;
    if (config_.ratio_clip_min) unused.emplace_back("ratio_clip_min");
    if (config_.ratio_clip_max) unused.emplace_back("ratio_clip_max");
    if (config_.ratio_clip_c) unused.emplace_back("ratio_clip_c");
    const bool reads_level = config_.ratio == RatioKind::cispo || (config_.reference_policy_kl_penalty > 0 && config_.kl_ratio_correction);
    if (config_.sequence_level_importance_ratios != RatioLevel::token && !reads_level)
      unused.emplace_back("sequence_level_importance_ratios");
    return unused;
  }

  void norm_tokens(RolloutRows& rows) const {
    std::vector<std::vector<double>> rewards;
    for (const RolloutRow& row : rows)
      if (row.trains)
        rewards.push_back(token_rewards(token_kls(row, config_.logged_kl()), config_.initial_policy_kl_penalty, row.reward.value));
    const std::vector<std::vector<double>> normed = batch_normed(rewards);
    auto next = normed.begin();
    for (RolloutRow& row : rows) {
      if (!row.trains) continue;
      row.advantages.assign(next->begin(), next->end());
      row.advantage = moments_of(*next).mean;
      ++next;
    }
  }

  PolicyGradientLoop config_;
  double entropy_bonus_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Algorithm> make_policy_gradient(const PolicyGradientLoop& loop, double entropy_bonus, std::string name) {
  return std::make_unique<PolicyGradient>(loop, entropy_bonus, std::move(name));
}

}  // namespace kedge
