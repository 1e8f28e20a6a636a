#include "kedge/algo/online/rollout_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kedge/algo/online/advantage.h"
#include "kedge/core/error.h"

#include "tests/support/rollouts.h"

namespace kedge {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::Pair;
using Parts = std::vector<std::pair<std::string, double>>;

// An answer of these ids to a prompt of `prompt_length` tokens.
Rollout answer(int64_t prompt_length, const TokenIds& ids, bool finished = true) {
  Rollout rollout{.ids = TokenIds(static_cast<size_t>(prompt_length), 9), .prompt_length = prompt_length, .finished = finished};
  rollout.ids.insert(rollout.ids.end(), ids.begin(), ids.end());
  return rollout;
}

RolloutRow row_of(Rollout rollout, int64_t slot, double reward, Parts parts = {}) {
  return {.rollout = testing::shared(std::move(rollout)), .slot = slot, .reward = {.value = reward, .parts = std::move(parts)}};
}

RolloutRow failed_row(Rollout rollout, int64_t slot, double value) {
  RolloutRow row = row_of(std::move(rollout), slot, value);
  row.reward.error = "no reply";
  return row;
}

// Two prompts, of 2 and 4 tokens, with two answers each; the last has no reward, whatever number stands there.
RolloutRows four_rows() {
  return {row_of(answer(2, {1, 2, 1, 2}), 0, 1, {{"tone", 3}, {"tone/warm", 7}}),
          row_of(answer(2, {1, 2}, false), 0, -2, {{"watch/long", 5}, {"tone", 4}}), row_of(answer(4, {3}), 1, 4, {{"watch/long", 8}}),
          failed_row(answer(4, {3, 4, 5}), 1, 1000)};
}

TEST(RolloutMetrics, AreMeansOverRowsAndRewardsOverThoseThatHaveOne) {
  const RolloutRows rows = four_rows();
  // Rewards 1, -2, 4: mean 1, deviations 0, -3, 3. Lengths of these answers 4, 2, 1: mean 7/3, deviations 5/3, -1/3, -4/3. Products
  // 1 and -4, squares 18 and 42/9. Pairs: 12 21 12, 12, none, 34 45.
  const double correlation = -3 / std::sqrt(18 * 42 / 9.0);
  EXPECT_THAT(answer_metrics(rows),
              ElementsAre(Pair("rollout_size", 4), Pair("response_lengths", DoubleEq((6 + 4 + 5 + 7) / 4.0)), Pair("prompt_lengths", 3),
                          Pair("generation_length", 2.5), Pair("generation_length_min", 1), Pair("generation_length_max", 4),
                          Pair("rewards", 1), Pair("fraction_of_samples_properly_ended", 0.75), Pair("failed_rewards", 1),
                          Pair("rewards_std", DoubleEq(std::sqrt(6))), Pair("reward_length_correlation", DoubleEq(correlation)),
                          Pair("rewards_group_std", DoubleEq(std::sqrt(4.5))), Pair("groups_without_spread", 0), Pair("rewards/tone", 3.5),
                          Pair("rewards/tone/warm", 7), Pair("watch/long", 6.5), Pair("distinct_2", DoubleEq(4 / 6.0))));
}

TEST(RolloutMetrics, TellWhereRewardsDoNotDiffer) {
  const RolloutRows rows = {row_of(answer(1, {1}), 0, 0.1), row_of(answer(1, {1, 2}), 0, 0.1),    row_of(answer(1, {1, 2}), 0, 0.1),
                            row_of(answer(1, {1}), 1, 0.1), row_of(answer(1, {1, 2, 3}), 2, 0.1), row_of(answer(1, {1}), 3, 0.1)};
  const Metrics metrics = answer_metrics(rows);
  // The mean of six times 0.1 is not 0.1 in binary numbers; a spread must not come of that.
  EXPECT_THAT(metrics.find("rewards_std"), Optional(0));
  EXPECT_THAT(metrics.find("rewards_group_std"), Optional(0));
  EXPECT_THAT(metrics.find("reward_length_correlation"), Optional(0));
  EXPECT_THAT(metrics.find("groups_without_spread"), Optional(1));  // of one; the others have a single answer
  EXPECT_FALSE(metrics.find("failed_rewards"));
}

TEST(RolloutMetrics, GroupsArePromptSlotsWithTwoRewardsAtLeast) {
  const RolloutRows rows = {row_of(answer(1, {1}), 0, 2),     row_of(answer(1, {1}), 0, 2), row_of(answer(1, {1}), 1, 2),
                            row_of(answer(1, {1}), 1, 3),     row_of(answer(1, {1}), 2, 5), failed_row(answer(1, {1}), 2, 5),
                            failed_row(answer(1, {1}), 3, 1), row_of(answer(1, {1}), 4, 7), row_of(answer(1, {1}), 4, 8)};
  EXPECT_THAT(answer_metrics(rows).find("groups_without_spread"), Optional(DoubleEq(1 / 3.0)));
  EXPECT_THAT(answer_metrics(rows).find("rewards_group_std"), Optional(DoubleEq(2 * std::sqrt(0.5) / 3)));  // with n - 1: 0, and twice that
}

TEST(RolloutMetrics, WithoutAnyRewardHaveNoMeanOfThem) {
  const RolloutRows rows = {failed_row(answer(1, {1}), 0, 3), failed_row(answer(1, {2}), 0, 4)};
  const Metrics metrics = answer_metrics(rows);
  EXPECT_THAT(metrics.find("failed_rewards"), Optional(2));
  for (const char* name : {"rewards", "rewards_std", "rewards_group_std", "reward_length_correlation", "groups_without_spread"})
    EXPECT_FALSE(metrics.find(name)) << name;
  EXPECT_FALSE(rs_metrics(rows).find("global_rewards"));
  EXPECT_FALSE(kl_metrics(rows).find("rewards_with_kl"));
}

TEST(RolloutMetrics, CompareTheEnginesLogprobsWithThoseOfTraining) {
  Rollout first = answer(1, {1, 2}), second = answer(1, {3});
  first.logprobs = {-1.5F, -0.25F};
  second.logprobs = {-2.0F};
  RolloutRows rows = {row_of(first, 0, 0), row_of(second, 0, 0), row_of(answer(1, {}), 1, 0)};
  rows[0].logprobs = {-1.25F, -0.25F};
  rows[1].logprobs = {-2.5F};
  rows[0].entropy = 1.5, rows[1].entropy = 0.5;  // the last was not computed
  const Metrics metrics = answer_metrics(rows);
  EXPECT_THAT(metrics.find("entropy"), Optional(1));
  EXPECT_THAT(metrics.find("logprob_gap_mean"), Optional(0.25));
  EXPECT_THAT(metrics.find("logprob_gap_max"), Optional(0.5));
  EXPECT_FALSE(answer_metrics(four_rows()).find("entropy"));
  EXPECT_FALSE(answer_metrics(four_rows()).find("logprob_gap_max"));
  rows[1].logprobs = {-2.5F, -1};
  EXPECT_THROW(static_cast<void>(answer_metrics(rows)), Bug);
}

TEST(RolloutMetrics, KlIsTheReferencesFigure) {
  // The answer tokens of the specification's two rows (its vectors of KL), with a penalty of 0.05; single log-probs, hence 1e-6.
  RolloutRows rows = {row_of(answer(3, {1, 2, 3, 4}), 0, 2), row_of(answer(2, {1, 2, 3}), 1, 1)};
  rows[0].logprobs = {-0.50F, -1.10F, -0.30F, -0.90F}, rows[0].reference = {-0.80F, -0.90F, -0.45F, -0.60F};
  rows[1].logprobs = {-0.60F, -1.40F, -0.20F}, rows[1].reference = {-0.50F, -1.10F, -0.65F};
  for (RolloutRow& row : rows) {
    row.kl_mean = answer_kl(KlEstimator::abs, KlReduce::mean, row.logprobs, row.reference);
    row.kl_sum = answer_kl(KlEstimator::abs, KlReduce::sum, row.logprobs, row.reference);
    row.reward_with_kl = row.reward.value - 0.05 * row.kl_mean;
  }
  const Metrics metrics = kl_metrics(rows);
  EXPECT_THAT(metrics.find("init_policy_kl"), Optional(::testing::DoubleNear(0.260416667, 1e-6)));
  EXPECT_THAT(metrics.find("init_policy_kl_sum"), Optional(::testing::DoubleNear(0.9, 1e-6)));  // (0.95 + 0.85) / 2
  EXPECT_THAT(metrics.find("rewards_with_kl"), Optional(::testing::DoubleNear((1.988125 + 0.985833333) / 2, 1e-6)));
  rows[1].reward.error = "no reply";  // its KL still counts
  EXPECT_THAT(kl_metrics(rows).find("init_policy_kl"), Optional(::testing::DoubleNear(0.260416667, 1e-6)));
  EXPECT_THAT(kl_metrics(rows).find("rewards_with_kl"), Optional(::testing::DoubleNear(1.988125, 1e-6)));
}

TEST(RolloutMetrics, RejectionSamplingLeavesThePromptOutOfTheLength) {
  EXPECT_THAT(rs_metrics(four_rows()),
              ElementsAre(Pair("global_response_lengths_mean", 2.5), Pair("global_prompt_lengths", 3), Pair("global_rewards", 1)));
}

TEST(RolloutMetrics, OfNoRowsAreAllLeftOut) {
  EXPECT_THAT(answer_metrics({}), ElementsAre(Pair("rollout_size", 0), Pair("distinct_2", 0)));
  EXPECT_TRUE(kl_metrics({}).empty());
  EXPECT_TRUE(first_sample_table("x", {}).rows.empty());
}

TEST(RolloutMetrics, TheTableHasTheFirstAnswer) {
  Rollout rollout = answer(2, {1, 2, 3});
  rollout.prompt = "Q", rollout.response = "A";
  RolloutRows rows = {row_of(rollout, 0, 1.5), row_of(answer(1, {1}), 0, 2)};
  SampleTable table = first_sample_table("train_rollouts", rows);
  EXPECT_EQ(table.name, "train_rollouts");
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0].prompt, "Q");
  EXPECT_EQ(table.rows[0].response, "A");
  EXPECT_THAT(table.rows[0].reward, Optional(1.5));
  EXPECT_EQ(table.rows[0].extra, (Json::Object{{"length", 3}}));
  rows[0].reference = {-1, -1, -1}, rows[0].kl_mean = 0.5, rows[0].reward.error = "no reply";
  table = first_sample_table("train_rollouts", rows);
  EXPECT_EQ(table.rows[0].reward, std::nullopt);
  EXPECT_EQ(table.rows[0].extra, (Json::Object{{"length", 3}, {"kl", 0.5}}));
}

RolloutRow text_row(std::string response, bool finished) {
  Rollout rollout = testing::rollout(std::move(response));
  rollout.finished = finished;
  return {.rollout = testing::shared(std::move(rollout))};
}

TEST(EndingHint, NamesTheEndsAndShowsHowThreeAnswersStop) {
  RolloutRows rows = {text_row("well done", true), text_row("on and\non", false)};
  // 61 bytes: the cut falls into the two of the first character, which goes as a whole.
  rows.push_back(text_row("\u00e9" + std::string(59, 'x'), false));
  rows.push_back(text_row("third", false));
  for (int i = 0; i < 7; ++i) rows.push_back(text_row("not shown", false));
  const EndTokens ends = {{2, "</s>"}, {7, "<|im_end|>"}};
  EXPECT_THAT(ending_hint(rows, ends),
              Optional("1 of 11 answers ended by themselves; the others were cut off by a length limit. What ends an answer: \"</s>\" (2), "
                       "\"<|im_end|>\" (7). Where they were cut off:\n  \"on and\\non\"\n  \"" +
                       std::string(59, 'x') + "\"\n  \"third\""));
  EXPECT_THAT(ending_hint(rows, {}), Optional(HasSubstr("What ends an answer: nothing. Where they were cut off:\n")));
}

TEST(EndingHint, SaysNothingWhereATenthEnds) {
  RolloutRows rows(9, text_row("x", false));
  rows.push_back(text_row("y", true));
  EXPECT_FALSE(ending_hint(rows, {}));
  rows.push_back(text_row("x", false));
  EXPECT_TRUE(ending_hint(rows, {}));
  EXPECT_FALSE(ending_hint({}, {}));
}

}  // namespace
}  // namespace kedge
