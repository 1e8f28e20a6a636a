#pragma once
// How good a policy's answers are and how sure that is: errors, win rates, pass@k. Answers to one prompt are correlated, so errors
// and intervals count prompts, not answers. Rows without a reward are left out. Independent of models.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kedge/rollout/rollout_row.h"

namespace kedge {

// A mean over prompts. Its standard error needs at least two prompts.
struct MeanOfPrompts {
  double mean = 0;
  std::optional<double> error = {};
  int64_t num_prompts = 0;
};
// Of numbers with one entry per prompt. None if there are no numbers.
[[nodiscard]] std::optional<MeanOfPrompts> mean_of_prompts(std::span<const double> numbers);

// Of the rewards: the mean over every prompt's own mean.
[[nodiscard]] std::optional<MeanOfPrompts> reward_of_prompts(std::span<const RolloutRow> rows);

// 95 %, by Wilson's score, which stays inside 0 and 1 and has a width even if all are won. `share` is a mean of numbers from 0 to 1;
// if some are neither 0 nor 1, the interval is wider than necessary, never narrower.
struct Interval {
  double low = 0, high = 1;
};
[[nodiscard]] Interval wilson_interval(double share, int64_t count);

// Does `reward` win against `other`? 1 if it is higher, 0 if it is lower, 0.5 for a tie.
[[nodiscard]] double win_of(double reward, double other);

// Two policies that answered the same prompts: rows are partners that have the same slot and sample.
struct Comparison {
  MeanOfPrompts wins;  // from 0 to 1
  Interval interval;   // of the wins
  MeanOfPrompts gain;  // of the reward over the baseline's
};
// None if no two rows are partners.
[[nodiscard]] std::optional<Comparison> compare_answers(std::span<const RolloutRow> rows, std::span<const RolloutRow> baseline);
// By row: the reward of its partner; none if there is no partner, or one of the two has no reward.
[[nodiscard]] std::vector<std::optional<double>> partner_rewards(std::span<const RolloutRow> rows, std::span<const RolloutRow> baseline);

// The probability that of k answers, sampled from `num_samples` without replacement, at least one is among the `num_passed` (Chen et al.
// 2021): an unbiased estimate of that for k new ones. `k` is at most `num_samples`.
[[nodiscard]] double pass_at_k(int64_t num_samples, int64_t num_passed, int64_t k);
// Its mean over the prompts that have k answers with a reward; an answer passes with at least this reward. None if no prompt has k.
[[nodiscard]] std::optional<double> pass_rate(std::span<const RolloutRow> rows, double threshold, int64_t k);

}  // namespace kedge
