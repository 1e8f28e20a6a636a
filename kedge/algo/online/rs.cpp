#include "kedge/algo/online/rs.h"

#include <limits>

#include "kedge/algo/online/policy_losses.h"
#include "kedge/algo/online/rollout_metrics.h"
#include "kedge/core/error.h"

namespace kedge {

RsConfig::RsConfig() {
  exp_manager = online_run("rs", "global_rewards", {"train_optim/loss", "train_rollouts/global_response_lengths_mean"});
}

OnlineSettings settings_of(const RsConfig& config) {
  const RsRolloutConfig& rollouts = config.model.rollouts;
  check(rollouts.top_n_rollouts <= rollouts.num_rollouts_per_prompt, "model.rs.top_n_rollouts: the best ", rollouts.top_n_rollouts, " of ",
        rollouts.num_rollouts_per_prompt, " answers (model.rs.num_rollouts_per_prompt) are more than there are");
  OnlineSettings settings = shared_settings(config);
  settings.samples_per_prompt = rollouts.num_rollouts_per_prompt;
  settings.rows_per_prompt = rollouts.top_n_rollouts;
  settings.names_reward = config.names_reward();
  fill_batch_size(settings);
  return settings;
}

namespace {

class RejectionSampling final : public Algorithm {
 public:
  explicit RejectionSampling(const RsConfig& config)
      : top_n_(config.model.rollouts.top_n_rollouts), entropy_bonus_(config.model.rollouts.entropy_bonus) {}

  [[nodiscard]] bool chooses_rows() const override { return true; }

  void score(OnlineStep& step) const override {
    std::vector<ScoredAnswer> answers;
    for (const RolloutRow& row : step.rows) {
      const double reward = row.reward.failed() ? -std::numeric_limits<double>::infinity() : row.reward.value;
      answers.push_back({.slot = row.slot, .reward = reward});
    }
    for (const size_t place : select_topk(answers, top_n_)) {
      step.rows[place].trains = !step.rows[place].reward.failed();
      step.chosen.push_back(static_cast<int64_t>(place));
    }
  }

  [[nodiscard]] TokenObjective objective() const override {
    return {.loss = [bonus = entropy_bonus_](const PassTokens& tokens) -> PassLoss {
              if (bonus == 0) return answer_terms(tokens.logprobs);
              return answer_terms(tokens.logprobs) - bonus * tokens.entropy;
            },
            .wants_entropy = entropy_bonus_ > 0};
  }

  [[nodiscard]] Metrics metrics(const OnlineStep& step) const override { return rs_metrics(step.rows); }
  [[nodiscard]] Metrics validation_metrics(const RolloutRows& rows) const override { return rs_metrics(rows); }

 private:
  int64_t top_n_;
  double entropy_bonus_;
};

}  // namespace

std::unique_ptr<Algorithm> make_algorithm(const RsConfig& config) { return std::make_unique<RejectionSampling>(config); }

}  // namespace kedge
