#include "kedge/algo/online/advantage.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "kedge/core/error.h"

namespace kedge {
namespace {

// Of a prompt's answers that count.
struct PromptGroup {
  int64_t count = 0;
  double sum = 0, squares = 0;  // of rewards, and of their distances from the mean

  [[nodiscard]] double mean() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
  [[nodiscard]] double deviation() const { return count > 1 ? std::sqrt(squares / static_cast<double>(count - 1)) : 0; }
};

PromptGroup group_of(std::span<const ScoredAnswer> answers) {
  PromptGroup group;
  for (const ScoredAnswer& answer : answers) {
    if (!answer.counts) continue;
    ++group.count;
    group.sum += answer.reward;
  }
  for (const ScoredAnswer& answer : answers)
    if (answer.counts) group.squares += (answer.reward - group.mean()) * (answer.reward - group.mean());
  return group;
}

double leave_one_out(const ScoredAnswer& answer, const PromptGroup& group) {
  if (group.count <= 1) return answer.reward;
  const double others = answer.counts ? group.sum - answer.reward : group.sum;
  return others / static_cast<double>(group.count - 1);
}

AnswerAdvantage advantage_of(const ScoredAnswer& answer, const PromptGroup& group, const PromptGroup& all, Baseline baseline) {
  const auto beside = [&](double base, double scale = 1) { return AnswerAdvantage{base, (answer.reward - base) * scale}; };
  switch (baseline) {
    case Baseline::rloo:
      return beside(leave_one_out(answer, group));
    case Baseline::group_mean:
      return beside(group.mean());
    case Baseline::group_norm:
      return beside(group.mean(), 1 / (group.deviation() + 1e-4));
    case Baseline::group_mean_batch_std:
      return beside(group.mean(), 1 / (all.deviation() + 1e-4));
    case Baseline::batch_mean:
    case Baseline::batch_norm:
      return beside(all.mean());
    case Baseline::none:
      return beside(0);
  }
  throw Bug("no such baseline");
}

}  // namespace

double token_kl(KlEstimator estimator, double logprob, double reference) {
  const double difference = logprob - reference;
  switch (estimator) {
    case KlEstimator::abs:
      return std::abs(difference);
    case KlEstimator::k1:
      return difference;
    case KlEstimator::k2:
      return difference * difference / 2;
    case KlEstimator::k3:
      return std::exp(-difference) - 1 + difference;
  }
  throw Bug("no such estimator");
}

double answer_kl(KlEstimator estimator, KlReduce reduce, std::span<const float> logprobs, std::span<const float> reference) {
  ensure(logprobs.size() == reference.size(), logprobs.size(), " log-probs, reference: ", reference.size());
  double sum = 0;
  for (size_t i = 0; i < logprobs.size(); ++i) sum += token_kl(estimator, logprobs[i], reference[i]);
  return reduce == KlReduce::sum || logprobs.empty() ? sum : sum / static_cast<double>(logprobs.size());
}

std::vector<AnswerAdvantage> answer_advantages(std::span<const ScoredAnswer> answers, Baseline baseline) {
  const PromptGroup all = group_of(answers);
  std::map<int64_t, std::vector<ScoredAnswer>> slots;
  for (const ScoredAnswer& answer : answers) slots[answer.slot].push_back(answer);
  std::map<int64_t, PromptGroup> groups;
  for (const auto& [slot, some] : slots) groups[slot] = group_of(some);
  std::vector<AnswerAdvantage> result;
  for (const ScoredAnswer& answer : answers) result.push_back(advantage_of(answer, groups[answer.slot], all, baseline));
  return result;
}

std::vector<size_t> select_topk(std::span<const ScoredAnswer> answers, int64_t top_n) {
  ensure(top_n >= 1, "the best ", top_n, " of an answer");
  std::map<int64_t, std::vector<size_t>> slots;
  for (size_t i = 0; i < answers.size(); ++i) slots[answers[i].slot].push_back(i);
  std::vector<size_t> chosen;
  for (auto& [slot, places] : slots) {
    std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) { return answers[a].reward < answers[b].reward; });
    const auto kept = static_cast<int64_t>(std::min(places.size(), static_cast<size_t>(top_n)));
    chosen.insert(chosen.end(), places.end() - kept, places.end());
  }
  return chosen;
}

TokenAdvantages gae(std::span<const double> rewards, std::span<const float> values, const GaeOptions& options) {
  ensure(rewards.size() == values.size(), rewards.size(), " rewards for ", values.size(), " values");
  TokenAdvantages result{std::vector<double>(rewards.size()), std::vector<double>(rewards.size())};
  double later = 0, next_value = 0;
  for (size_t i = rewards.size(); i-- > 0;) {
    const double surprise = rewards[i] + options.discount * next_value - double{values[i]};
    later = surprise + options.discount * options.gae_lambda * later;
    result.advantages[i] = later;
    result.returns[i] = later + double{values[i]};
    next_value = double{values[i]};
  }
  return result;
}

std::vector<double> token_rewards(std::span<const double> kl, double beta, double reward) {
  std::vector<double> rewards;
  for (const double one : kl) rewards.push_back(-beta * one);
  if (!rewards.empty()) rewards.back() += reward;
  return rewards;
}

std::vector<std::vector<double>> batch_normed(std::span<const std::vector<double>> rewards) {
  std::vector<double> all;
  for (const std::vector<double>& answer : rewards) {
    const std::vector<float> no_values(answer.size(), 0.0F);
    const TokenAdvantages learned = gae(answer, no_values, {.discount = 1, .gae_lambda = 1});
    all.insert(all.end(), learned.advantages.begin(), learned.advantages.end());
  }
  whiten(all, moments_of(all));
  std::vector<std::vector<double>> normed;
  auto begin = all.begin();
  for (const std::vector<double>& answer : rewards) {
    normed.emplace_back(begin, begin + std::ssize(answer));
    begin += std::ssize(answer);
  }
  return normed;
}

Moments moments_of(std::span<const double> values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  Moments moments{.mean = std::accumulate(values.begin(), values.end(), 0.0) / count};
  for (const double value : values) moments.variance += (value - moments.mean) * (value - moments.mean) / count;
  return moments;
}

void whiten(std::span<double> values, const Moments& moments) {
  for (double& value : values) value = (value - moments.mean) / std::sqrt(moments.variance + 1e-8);
}

}  // namespace kedge
