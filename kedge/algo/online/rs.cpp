#include "kedge/algo/online/rs.h"

#include <limits>

#include "kedge/algo/online/policy_losses.h"
#include "kedge/algo/online/rollout_metrics.h"
#include "kedge/core/error.h"

namespace kedge {

RsConfig::RsConfig() {
  exp_manager = online_run("rs", "global_rewards");
  for (const char* key : {"train_optim/loss", "train_rollouts/global_response_lengths_mean"})
    exp_manager.metrics.console_keys.emplace_back(key);
}

OnlineSettings settings_of(const RsConfig& config) {
  const RsRolloutConfig& rollouts = config.model.rs;
  check(rollouts.top_n_rollouts <= rollouts.num_rollouts_per_prompt, "model.rs.top_n_rollouts: the best ", rollouts.top_n_rollouts, " of ",
        rollouts.num_rollouts_per_prompt, " answers (model.rs.num_rollouts_per_prompt) are more than there are");
  OnlineSettings settings{.name = "rs",
                          .loop = config.trainer.rs,
                          .rollouts = rollouts,
                          .model = config.model,
                          .records = config.rollouts,
                          .samples_per_prompt = rollouts.num_rollouts_per_prompt,
                          .rows_per_prompt = rollouts.top_n_rollouts,
                          .names_reward = !config.reward.sources.empty() || config.remote_rm,
                          .reward = reward_of(config),
                          .widths = widths_of(config)};
  settings.identity = rollout_identity(settings.reward, config.model.data, rollouts);
  return settings;
}

StepReport RSTrainer::train_step() {
  AnswerRows rows = generate_rollouts();
  generate_rs_data(rows);
  std::vector<Metrics> updates = run_training(rows);
  return finish_step(std::move(rows), std::move(updates));
}

AnswerRows RSTrainer::generate_rollouts() {
  const auto scope = timers_.measure("rollout_time");
  AnswerRows rows = generate();
  take_rewards(rows);
  return rows;
}

void RSTrainer::generate_rs_data(AnswerRows& rows) {
  std::vector<ScoredAnswer> answers;
  for (const AnswerRow& row : rows) {
    const double reward = row.reward.failed() ? -std::numeric_limits<double>::infinity() : row.reward.value;
    answers.push_back({.slot = row.slot, .reward = reward});
  }
  std::vector<int64_t> chosen;
  for (const size_t place : select_topk(answers, settings().rows_per_prompt)) {
    rows[place].trains = !rows[place].reward.failed();
    chosen.push_back(static_cast<int64_t>(place));
  }
  minibatches_ = minibatches_of(rows, std::move(chosen));
}

std::vector<Metrics> RSTrainer::run_training(AnswerRows& rows) {
  return train(minibatches_, rows,
               {.norm = LossNorm::reference, .loss = [](const PassTokens& tokens) { return answer_terms(tokens.logprobs); }});
}

Metrics RSTrainer::numbers_of(const AnswerRows& rows, bool /*is_validation*/) const { return rs_metrics(rows); }

}  // namespace kedge
