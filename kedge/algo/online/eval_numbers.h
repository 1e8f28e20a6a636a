#pragma once
// How good a policy's answers are and how sure that is: errors, win rates, pass@k. Answers to one prompt resemble each other, so whatever
// says how sure a number is counts prompts, not answers. Rows that nobody could judge are left out. Knows no models.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kedge/rollout/rollout_row.h"

namespace kedge {

// A mean over prompts. Its standard error is known from two prompts on.
struct MeanOfPrompts {
  double mean = 0;
  std::optional<double> error = {};
  int64_t num_prompts = 0;
};
// Of numbers that have one entry a prompt. None of no numbers.
[[nodiscard]] std::optional<MeanOfPrompts> mean_of_prompts(std::span<const double> numbers);

// Of the rewards: the mean over every prompt's own mean.
[[nodiscard]] std::optional<MeanOfPrompts> reward_of_prompts(std::span<const RolloutRow> rows);

// 95 %, by Wilson's score, which stays inside 0 and 1 and has a width also where all are won. `share` is a mean of numbers from 0 to 1;
// where some are neither 0 nor 1 the interval is wider than it must be, never narrower.
struct Interval {
  double low = 0, high = 1;
};
[[nodiscard]] Interval wilson_interval(double share, int64_t count);

// Does `reward` win against `other`? 1 where it is higher, 0 where it is lower, 0.5 for a tie.
[[nodiscard]] double win_of(double reward, double other);

// Two policies that answered the same prompts: rows are partners that have the same slot and sample.
struct Comparison {
  MeanOfPrompts wins;  // from 0 to 1
  Interval interval;   // of the wins
  MeanOfPrompts gain;  // of the reward over the baseline's
};
// None where no two rows are partners.
[[nodiscard]] std::optional<Comparison> compare_answers(std::span<const RolloutRow> rows, std::span<const RolloutRow> baseline);
// By row: the reward of its partner; none where there is none, or where one of the two has no reward.
[[nodiscard]] std::vector<std::optional<double>> partner_rewards(std::span<const RolloutRow> rows, std::span<const RolloutRow> baseline);

// The chance that of k answers, drawn from `num_samples` without putting any back, one at least is among the `num_passed` (Chen et al.
// 2021): an estimate without bias of that for k fresh ones. `k` is at most `num_samples`.
[[nodiscard]] double pass_at_k(int64_t num_samples, int64_t num_passed, int64_t k);
// Its mean over the prompts that have k judged answers; an answer passes that has at least this reward. None where no prompt has so many.
[[nodiscard]] std::optional<double> pass_rate(std::span<const RolloutRow> rows, double threshold, int64_t k);

}  // namespace kedge
