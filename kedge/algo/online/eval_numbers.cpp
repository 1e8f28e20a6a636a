#include "kedge/algo/online/eval_numbers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

using AnswerRows = std::span<const RolloutRow>;

// What every prompt's rows have, in the order of the prompts.
using ByPrompt = std::map<int64_t, std::vector<double>>;

std::vector<double> means_of(const ByPrompt& prompts) {
  std::vector<double> means;
  for (const auto& [slot, numbers] : prompts) {
    double sum = 0;
    for (const double number : numbers) sum += number;
    means.push_back(sum / static_cast<double>(numbers.size()));
  }
  return means;
}

ByPrompt rewards_of(AnswerRows rows) {
  ByPrompt prompts;
  for (const RolloutRow& row : rows)
    if (!row.reward.failed()) prompts[row.slot].push_back(row.reward.value);
  return prompts;
}

}  // namespace

std::optional<MeanOfPrompts> mean_of_prompts(std::span<const double> numbers) {
  if (numbers.empty()) return std::nullopt;
  const auto count = static_cast<double>(numbers.size());
  MeanOfPrompts result{.num_prompts = static_cast<int64_t>(numbers.size())};
  for (const double number : numbers) result.mean += number / count;
  if (numbers.size() < 2) return result;
  double squares = 0;
  for (const double number : numbers) squares += (number - result.mean) * (number - result.mean);
  result.error = std::sqrt(squares / (count - 1) / count);
  return result;
}

std::optional<MeanOfPrompts> reward_of_prompts(AnswerRows rows) { return mean_of_prompts(means_of(rewards_of(rows))); }

Interval wilson_interval(double share, int64_t count) {
  ensure(count > 0 && share >= 0 && share <= 1, "an interval of ", share, " of ", count);
  constexpr double kDeviations = 1.959963984540054;  // 95 % of a normal distribution lie within
  const auto n = static_cast<double>(count);
  const double square = kDeviations * kDeviations;
  const double centre = (share + square / (2 * n)) / (1 + square / n);
  const double reach = kDeviations / (1 + square / n) * std::sqrt(share * (1 - share) / n + square / (4 * n * n));
  return {std::max(0.0, centre - reach), std::min(1.0, centre + reach)};
}

double win_of(double reward, double other) { return reward > other ? 1 : reward < other ? 0 : 0.5; }

std::vector<std::optional<double>> partner_rewards(AnswerRows rows, AnswerRows baseline) {
  std::map<std::pair<int64_t, int64_t>, double> rewards;
  for (const RolloutRow& row : baseline)
    if (!row.reward.failed()) rewards[{row.slot, row.rollout->sample}] = row.reward.value;
  std::vector<std::optional<double>> partners;
  for (const RolloutRow& row : rows) {
    const auto found = rewards.find({row.slot, row.rollout->sample});
    const bool both = found != rewards.end() && !row.reward.failed();
    partners.push_back(both ? std::optional(found->second) : std::nullopt);
  }
  return partners;
}

std::optional<Comparison> compare_answers(AnswerRows rows, AnswerRows baseline) {
  const std::vector<std::optional<double>> partners = partner_rewards(rows, baseline);
  ByPrompt wins, gains;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!partners[i]) continue;
    const double reward = rows[i].reward.value;
    wins[rows[i].slot].push_back(win_of(reward, *partners[i]));
    gains[rows[i].slot].push_back(reward - *partners[i]);
  }
  if (wins.empty()) return std::nullopt;
  Comparison result{.wins = *mean_of_prompts(means_of(wins)), .interval = {}, .gain = *mean_of_prompts(means_of(gains))};
  result.wins.mean = std::clamp(result.wins.mean, 0.0, 1.0);  // a sum of parts of 1 may be a bit above it
  result.interval = wilson_interval(result.wins.mean, result.wins.num_prompts);
  return result;
}

double pass_at_k(int64_t num_samples, int64_t num_passed, int64_t k) {
  ensure(k >= 1 && k <= num_samples && num_passed >= 0 && num_passed <= num_samples, "pass@", k, " of ", num_samples);
  if (num_samples - num_passed < k) return 1;  // there are not k that fail
  // (n - c choose k) / (n choose k), a factor for each answer that passes, so that nothing overflows.
  double all_fail = 1;
  for (int64_t i = num_samples - num_passed + 1; i <= num_samples; ++i) all_fail *= 1 - static_cast<double>(k) / static_cast<double>(i);
  return 1 - all_fail;
}

std::optional<double> pass_rate(AnswerRows rows, double threshold, int64_t k) {
  std::vector<double> rates;
  for (const auto& [slot, rewards] : rewards_of(rows)) {
    const auto num_samples = static_cast<int64_t>(rewards.size());
    if (num_samples < k) continue;
    const auto passed = std::count_if(rewards.begin(), rewards.end(), [&](double reward) { return reward >= threshold; });
    rates.push_back(pass_at_k(num_samples, passed, k));
  }
  const std::optional<MeanOfPrompts> mean = mean_of_prompts(rates);
  return mean ? std::optional(mean->mean) : std::nullopt;
}

}  // namespace kedge
