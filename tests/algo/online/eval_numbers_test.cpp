#include "kedge/algo/online/eval_numbers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kedge {
namespace {

// Answers to prompts 0, 1, ...: a list of rewards for each.
RolloutRows rows_of(const std::vector<std::vector<double>>& prompts) {
  RolloutRows rows;
  for (size_t slot = 0; slot < prompts.size(); ++slot)
    for (size_t sample = 0; sample < prompts[slot].size(); ++sample) {
      const auto rollout = std::make_shared<Rollout>();
      rollout->sample = static_cast<int64_t>(sample);
      rows.push_back({.rollout = rollout, .slot = static_cast<int64_t>(slot), .reward = {.value = prompts[slot][sample]}});
    }
  return rows;
}

// Hand-worked numbers are given to 1e-12: sums of a few doubles of the size of 1.
constexpr double kRounding = 1e-12;

TEST(EvalNumbers, StandardErrorOfAMeanIsThatOfPrompts) {
  // Mean 4, squares of the distances 9 + 1 + 1 + 9 = 20; 20 / 3 / 4 = 5 / 3.
  const auto mean = mean_of_prompts(std::vector<double>{1, 3, 5, 7});
  ASSERT_TRUE(mean);
  EXPECT_DOUBLE_EQ(mean->mean, 4);
  EXPECT_EQ(mean->num_prompts, 4);
  EXPECT_NEAR(mean->error.value(), std::sqrt(5.0 / 3), kRounding);
  EXPECT_FALSE(mean_of_prompts({}));
  const auto alone = mean_of_prompts(std::vector<double>{2});
  EXPECT_EQ(alone->mean, 2);
  EXPECT_FALSE(alone->error) << "one prompt says nothing about others";
}

TEST(EvalNumbers, SamplesOfAPromptCountAsOne) {
  // Means 1, 3, 5: mean 3, error sqrt(8 / 2 / 3). Six answers taken as independent would have a smaller error.
  const auto mean = reward_of_prompts(rows_of({{0, 2}, {3, 3}, {4, 6}}));
  ASSERT_TRUE(mean);
  EXPECT_NEAR(mean->mean, 3, kRounding);
  EXPECT_NEAR(mean->error.value(), std::sqrt(4.0 / 3), kRounding);
  EXPECT_EQ(mean->num_prompts, 3);
}

TEST(EvalNumbers, RowsWithoutARewardAreLeftOut) {
  RolloutRows rows = rows_of({{1, 100}, {3}, {100}});
  rows[1].reward.error = rows[3].reward.error = "nobody could judge it";
  const auto mean = reward_of_prompts(rows);
  ASSERT_TRUE(mean);
  EXPECT_NEAR(mean->mean, 2, kRounding);
  EXPECT_EQ(mean->num_prompts, 2);
  for (RolloutRow& row : rows) row.reward.error = "nor these";
  EXPECT_FALSE(reward_of_prompts(rows));
}

TEST(EvalNumbers, WilsonsIntervalIsTheTextbooks) {
  // z^2 = 3.8414588: (0.5 + 0.38414588 / 2) / 1.38414588 = 0.5, and 1.95996398 / 1.38414588 * sqrt(0.025 + 0.0096036) = 0.26340652.
  const Interval half = wilson_interval(0.5, 10);
  EXPECT_NEAR(half.low, 0.2365931, 1e-7);
  EXPECT_NEAR(half.high, 0.7634069, 1e-7);
  // All of n: from n / (n + z^2) on, here 10 / 13.8414588.
  const Interval all = wilson_interval(1, 10);
  EXPECT_NEAR(all.low, 0.7224672, 1e-7);
  EXPECT_DOUBLE_EQ(all.high, 1);
  const Interval none = wilson_interval(0, 10);
  EXPECT_NEAR(none.low, 0, 1e-15);
  EXPECT_NEAR(none.high, 0.2775328, 1e-7);
}

TEST(EvalNumbers, AHigherRewardWinsAndATieIsHalf) {
  // Prompts: won, lost, tied, won.
  const auto compared = compare_answers(rows_of({{2}, {0}, {5}, {1}}), rows_of({{1}, {3}, {5}, {-1}}));
  ASSERT_TRUE(compared);
  EXPECT_NEAR(compared->wins.mean, 2.5 / 4, kRounding);
  // Gains 1, -3, 0, 2: mean 0, squares 14; 14 / 3 / 4.
  EXPECT_NEAR(compared->gain.mean, 0, kRounding);
  EXPECT_NEAR(compared->gain.error.value(), std::sqrt(14.0 / 12), kRounding);
  const Interval wanted = wilson_interval(0.625, 4);
  EXPECT_DOUBLE_EQ(compared->interval.low, wanted.low);
  EXPECT_DOUBLE_EQ(compared->interval.high, wanted.high);
}

TEST(EvalNumbers, SeveralSamplesMeetTheirOwnNumbers) {
  // Prompt 0: sample 0 wins, 1 loses, so it is half won; prompt 1: both win. Two prompts, not four answers, make the interval.
  const auto compared = compare_answers(rows_of({{2, 1}, {1, 1}}), rows_of({{1, 2}, {0, 0}}));
  ASSERT_TRUE(compared);
  EXPECT_NEAR(compared->wins.mean, 0.75, kRounding);
  EXPECT_EQ(compared->wins.num_prompts, 2);
  EXPECT_DOUBLE_EQ(compared->interval.low, wilson_interval(0.75, 2).low);
}

TEST(EvalNumbers, ABaselineAgainstItselfIsHalfWon) {
  const RolloutRows rows = rows_of({{1, -2}, {0.5, 7}, {3, 3}});
  const auto compared = compare_answers(rows, rows);
  ASSERT_TRUE(compared);
  EXPECT_DOUBLE_EQ(compared->wins.mean, 0.5);
  EXPECT_DOUBLE_EQ(compared->gain.mean, 0);
}

TEST(EvalNumbers, PairsOfWhichOneHasNoRewardAreLeftOut) {
  RolloutRows rows = rows_of({{2}, {9}, {9}}), baseline = rows_of({{1}, {1}, {1}});
  rows[1].reward.error = "no reward";
  baseline[2].reward.error = "no reward";
  const auto compared = compare_answers(rows, baseline);
  ASSERT_TRUE(compared);
  EXPECT_EQ(compared->wins.num_prompts, 1);
  EXPECT_DOUBLE_EQ(compared->gain.mean, 1);
  const auto partners = partner_rewards(rows, baseline);
  EXPECT_EQ(partners[0], 1);
  EXPECT_FALSE(partners[1]);
  EXPECT_FALSE(partners[2]);
  baseline[0].reward.error = "no reward";
  EXPECT_FALSE(compare_answers(rows, baseline));
}

TEST(EvalNumbers, PassAtKIsWithoutBias) {
  // One of 4 passes. k = 1: 1/4. k = 2: 1 - (3 choose 2) / (4 choose 2) = 1 - 3/6. k = 3: 1 - 1/4. k = 4: certain.
  EXPECT_NEAR(pass_at_k(4, 1, 1), 0.25, kRounding);
  EXPECT_NEAR(pass_at_k(4, 1, 2), 0.5, kRounding);
  EXPECT_NEAR(pass_at_k(4, 1, 3), 0.75, kRounding);
  EXPECT_EQ(pass_at_k(4, 1, 4), 1);
  // Two of 5, k = 2: 1 - 3/10.
  EXPECT_NEAR(pass_at_k(5, 2, 2), 0.7, kRounding);
  EXPECT_EQ(pass_at_k(5, 0, 3), 0);
  EXPECT_EQ(pass_at_k(5, 5, 1), 1);
  EXPECT_NEAR(pass_at_k(1000, 1, 500), 0.5, kRounding) << "binomials of this size overflow a double";
}

TEST(EvalNumbers, PassRateIsTheMeanOverPrompts) {
  const RolloutRows rows = rows_of({{1, 0, 0, 0}, {1, 1, 0, 0}, {0, 0, 0, 0}});
  EXPECT_NEAR(pass_rate(rows, 1, 1).value(), (0.25 + 0.5 + 0) / 3, kRounding);
  // 1 - 3/6 and 1 - 1/6.
  EXPECT_NEAR(pass_rate(rows, 1, 2).value(), (0.5 + 5.0 / 6 + 0) / 3, kRounding);
  EXPECT_NEAR(pass_rate(rows, 0, 1).value(), 1, kRounding) << "the threshold itself passes";
  EXPECT_FALSE(pass_rate(rows, 1, 5));
}

TEST(EvalNumbers, PromptsWithTooFewJudgedAnswersAreLeftOutOfPassAtK) {
  RolloutRows rows = rows_of({{1, 0}, {1, 1}});
  rows[0].reward.error = "no reward";
  EXPECT_NEAR(pass_rate(rows, 1, 1).value(), 0.5, kRounding) << "of the first prompt only the failure counts";
  EXPECT_NEAR(pass_rate(rows, 1, 2).value(), 1, kRounding);
}

}  // namespace
}  // namespace kedge
