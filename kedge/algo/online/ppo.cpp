#include "kedge/algo/online/ppo.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kedge/algo/online/policy_losses.h"
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

  [[nodiscard]] Metrics numbers() const {
    Metrics metrics;
    const auto tell = [&](const std::string& name, std::span<const double> numbers) {
      const Moments moments = moments_of(numbers);
      metrics.set(name + "_mean", moments.mean);
      metrics.set(name + "_std", std::sqrt(moments.variance));
    };
    tell("advantages", advantages);
    tell("returns", returns);
    tell("values", values);
    double squares = 0;
    for (const double distance : distances) squares += distance * distance;
    if (!distances.empty()) metrics.set("values_loss", 0.5 * squares / static_cast<double>(distances.size()));
    const double spread = moments_of(returns).variance;
    if (spread > 0) metrics.set("values_explained", 1 - moments_of(distances).variance / spread);
    return metrics;
  }
};

std::vector<double> token_kls(const AnswerRow& row, KlEstimator estimator) {
  std::vector<double> kls(static_cast<size_t>(row.rollout->response_length()), 0);
  if (row.reference.empty()) return kls;
  for (size_t i = 0; i < kls.size(); ++i) kls[i] = token_kl(estimator, row.logprobs[i], row.reference[i]);
  return kls;
}

double mean_of(std::span<const double> numbers) {
  return numbers.empty() ? 0 : std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

}  // namespace

PpoConfig::PpoConfig() {
  exp_manager = online_run("ppo", "rewards");
  for (const char* key : {"train_rollouts/init_policy_kl", "train_rollouts/values_explained", "train_rollouts/generation_length"})
    exp_manager.metrics.console_keys.emplace_back(key);
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
    check(!config.local_critic, "reward.sources: names no source of rewards, and a local_critic gives none");
    RewardSourceConfig source = source_at(servers.reward_model, servers.pad_to_length);
    if (combines) source = {.kind = RewardKind::critic};
    reward.sources.emplace(combines ? "critic" : "remote_rm", std::move(source));
  }
  const bool has_critic = std::any_of(reward.sources.begin(), reward.sources.end(),
                                      [](const auto& source) { return source.second.kind == RewardKind::critic; });
  check(has_critic || !combines, key, " is true, but none of reward.sources has the kind critic. Where rewards come from them alone, set ",
        key, "=false here and trainer.ppo.combine_rm_and_critic_server=false at the critic's server");
  check(!has_critic || combines, "reward.sources: one has the kind critic, but ",
        config.local_critic ? "a local_critic gives no rewards" : key + " is false");
  check_rewards(reward);
  return reward;
}

OnlineSettings settings_of(const PpoConfig& config) {
  const PpoLoopConfig& loop = config.trainer.ppo;
  OnlineSettings settings{.name = "ppo",
                          .loop = loop,
                          .rollouts = config.model.ppo,
                          .model = config.model,
                          .records = config.rollouts,
                          .epochs = loop.ppo_epochs,
                          .wants_reference = loop.initial_policy_kl_penalty > 0,
                          .wants_logprobs = true,
                          .kl_estimator = loop.estimator(),
                          .reward = reward_of(config),
                          .widths = widths_of(config)};
  if (!config.local_critic && config.remote_critic_rm.pad_to_length)
    settings.widths["remote_critic_rm.pad_to_length"] = *config.remote_critic_rm.pad_to_length;
  settings.identity = rollout_identity(settings.reward, config.model.data, config.model.ppo);
  return settings;
}

PpoSettings ppo_settings(const PpoConfig& config) {
  return {.loop = config.trainer.ppo, .ratio_eps = config.model.ppo.ratio_eps, .entropy_bonus = config.model.ppo.entropy_bonus};
}

PPOTrainer::PPOTrainer(OnlineParts parts, PpoSettings ppo, OnlineSettings settings)
    : OnlineTrainer(std::move(parts), std::move(settings)), ppo_(std::move(ppo)) {
  ensure(values() != nullptr, "PPO without a critic");
}

// The critic's save of this step must hold what the policy's does.
void PPOTrainer::tie_critic() {
  const std::optional<int64_t> found = values()->critic().restore(round());
  if (!found) return;
  if (train_calls_ && *train_calls_ != *found)
    throw Error(str("policy and critic do not belong together: at step ", round(), " the policy's checkpoint was saved after ",
                    *train_calls_, " training calls of the critic, and the critic's save of that step holds ", *found,
                    ". Give this run the critic it was saved with, or start over in another exp_manager.explicit_log_dir"));
  train_calls_ = found;
}

StepReport PPOTrainer::train_step() {
  if (!std::exchange(is_tied_, true)) tie_critic();
  std::vector<Metrics> told;
  const int64_t num_warmups = round() == 0 ? ppo_.loop.critic_warmup_steps : 0;
  for (int64_t warmup = 0; warmup < num_warmups; ++warmup) {
    if (values()->critic().learns()) {
      told.push_back(warm_up(warmup));
    } else {
      pass_over_warmup_prompts();
    }
  }
  AnswerRows rows = generate_rollouts();
  if (num_warmups > 0) hand_back_warmup_prompts();
  generate_ppo_data(rows);
  train_critic(rows);
  for (Metrics& update : run_training(rows)) told.push_back(std::move(update));
  return finish_step(std::move(rows), std::move(told));
}

Metrics PPOTrainer::warm_up(int64_t warmup) {
  AnswerRows rows = judge(generate_warmup(warmup));
  generate_ppo_data(rows);
  train_critic(rows);
  static_cast<void>(timers_.take());  // of the step's phases those of its last round are told
  return round_metrics(rows).with_prefix("train_rollouts/");
}

AnswerRows PPOTrainer::generate_rollouts() {
  const auto scope = timers_.measure("rollout_time");
  return judge(generate());
}

AnswerRows PPOTrainer::judge(AnswerRows rows) {
  add_logprobs(minibatches_of(rows), rows);  // while rewards and values are still on their way
  take_rewards(rows);
  const auto scope = timers_.measure("critic_wait");
  values()->take(group(), rows);
  return rows;
}

void PPOTrainer::generate_ppo_data(AnswerRows& rows) {
  add_kl(rows, ppo_.loop.estimator());
  StepTokens tokens;
  for (AnswerRow& row : rows) {
    row.trains = !row.reward.failed() && (row.rollout->finished || ppo_.loop.unfinished == Unfinished::keep);
    if (row.reward.failed()) continue;
    const std::vector<double> rewards =
        token_rewards(token_kls(row, ppo_.loop.estimator()), ppo_.loop.initial_policy_kl_penalty, row.reward.value);
    row.reward_with_kl = mean_of(rewards);
    const TokenAdvantages learned = gae(rewards, row.values, {ppo_.loop.discount_factor, ppo_.loop.gae_lambda});
    row.returns.assign(learned.returns.begin(), learned.returns.end());
    tokens.add(learned, row.values);
  }
  token_numbers_ = tokens.numbers();
  if (ppo_.loop.normalize_advantages) whiten(tokens.advantages, moments_of(tokens.advantages));
  auto advantage = tokens.advantages.begin();
  for (AnswerRow& row : rows) {
    if (row.reward.failed()) continue;
    const auto end = advantage + row.rollout->response_length();
    row.advantages.assign(advantage, end);
    row.advantage = mean_of({advantage, end});
    advantage = end;
  }
}

void PPOTrainer::train_critic(const AnswerRows& rows) {
  CriticBatch batch = critic_batch(rows, ppo_.loop.critic_epochs);
  if (batch.num_rows == 0) return;
  values()->critic().train(std::move(batch));
  if (train_calls_) ++*train_calls_;
}

CriticBatch critic_batch(const AnswerRows& rows, int64_t epochs) {
  CriticBatch batch;
  for (const AnswerRow& row : rows)
    if (!row.reward.failed()) batch.width = std::max(batch.width, row.rollout->length());
  const auto width = static_cast<size_t>(batch.width);
  for (int64_t epoch = 0; epoch < epochs; ++epoch)
    for (const AnswerRow& row : rows) {
      if (row.reward.failed()) continue;
      const Rollout& rollout = *row.rollout;
      ++batch.num_rows;
      batch.tokens.insert(batch.tokens.end(), rollout.ids.begin(), rollout.ids.end());
      batch.tokens.resize(static_cast<size_t>(batch.num_rows) * width, 0);
      // What is learned at a place belongs to the id behind it: the prompt's last place is the answer's first.
      const auto before = static_cast<size_t>(rollout.prompt_length - 1), end = static_cast<size_t>(batch.num_rows) * (width - 1);
      const auto add = [&](std::vector<float>& to, const std::vector<float>& numbers) {
        to.resize(to.size() + before, 0);
        to.insert(to.end(), numbers.begin(), numbers.end());
        to.resize(end, 0);
      };
      add(batch.returns, row.returns);
      add(batch.previous, row.values);
      add(batch.mask, std::vector<float>(row.returns.size(), 1));
    }
  return batch;
}

std::vector<Metrics> PPOTrainer::run_training(AnswerRows& rows) {
  const bool has_bonus = ppo_.entropy_bonus > 0;
  const auto loss = [&](const PassTokens& tokens) -> PassLoss {
    const ClippedTerms terms = clipped_terms(tokens.logprobs, tokens.previous, tokens.advantages, ppo_.ratio_eps);
    std::vector<PassNumber> numbers = {{.name = "ppo_ratio", .values = terms.ratio, .base = 1},
                                       {.name = "ppo_ratio_clamped", .values = terms.clamped, .base = 1},
                                       {.name = "ppo_clip_fraction", .values = terms.ratio.ne(terms.clamped).to(at::kFloat)}};
    if (!has_bonus) return {terms.losses, numbers};
    const Tensor bonus = ppo_.entropy_bonus * tokens.entropy;
    numbers.push_back({.name = "scaled_entropy", .values = bonus.detach(), .of_trained = true});
    return {terms.losses - bonus, numbers};
  };
  std::vector<Metrics> updates =
      train(minibatches_of(rows), rows, {.norm = ppo_.loop.loss_norm, .loss = loss, .tells_numbers = true, .wants_entropy = has_bonus});
  if (!has_bonus)
    for (Metrics& update : updates) update.set("train_optim/scaled_entropy", 0);
  return updates;
}

Metrics PPOTrainer::numbers_of(const AnswerRows& rows, bool is_validation) const {
  if (is_validation) return validation_numbers(rows);
  Metrics metrics = kl_metrics(rows);
  metrics.merge(token_numbers_);
  return metrics;
}

void PPOTrainer::finish() { values()->critic().finish_training(); }

FolderWriter PPOTrainer::save(StateSnapshot& state) const {
  // Only both together are a checkpoint. The critic writes while the policy does, unless nothing goes on meanwhile: then it saves when the
  // policy's part is there, so that the few saves it keeps do not run ahead of a disk that is full here.
  ValueSource& critic = values()->critic();
  std::shared_future<void> saving;
  if (state.copies()) saving = critic.save(round(), resumable_step_);
  if (train_calls_) state.set("trainer.train_calls", *train_calls_);
  const FolderWriter write = OnlineTrainer::save(state);
  if (!write) return {};
  return [write, saving, &critic, step = round(), resumable = resumable_step_](const Path& folder) {
    write(folder);
    (saving.valid() ? saving : critic.save(step, resumable)).get();
  };
}

void PPOTrainer::load(const StateFiles& state) {
  OnlineTrainer::load(state);
  resumable_step_ = round();
  const Json* calls = state.find("trainer.train_calls");
  train_calls_ = calls == nullptr ? std::nullopt : std::optional(calls->as_integer("trainer.train_calls"));
}

}  // namespace kedge
