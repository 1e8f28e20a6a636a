#include "kedge/algo/online/minibatches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kedge/core/error.h"
#include "kedge/core/random.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using Rows = std::vector<int64_t>;
using Terms = std::vector<std::vector<double>>;  // of each row's tokens

std::vector<Rows> rows_of(const std::vector<Pass>& passes) {
  std::vector<Rows> rows;
  for (const Pass& pass : passes) rows.push_back(pass.rows);
  return rows;
}

TEST(Minibatches, RanksTakeRowsOfEveryUpdate) {
  const Rows order = {7, 6, 5, 4, 3, 2, 1, 0}, lengths(8, 10);
  const BatchSizes sizes{.global_size = 4, .micro_size = 2, .tokens_per_pass = 100};
  const auto first = plan_minibatches(order, lengths, sizes, 0, 2), second = plan_minibatches(order, lengths, sizes, 1, 2);
  ASSERT_EQ(first.size(), 2U);
  for (const auto& plan : {first, second}) {
    EXPECT_THAT(plan[0].rows, ElementsAre(7, 6, 5, 4));
    EXPECT_THAT(plan[1].rows, ElementsAre(3, 2, 1, 0));
  }
  EXPECT_THAT(rows_of(first[0].passes), ElementsAre(Rows{7, 5}));
  EXPECT_THAT(rows_of(first[1].passes), ElementsAre(Rows{3, 1}));
  EXPECT_THAT(rows_of(second[0].passes), ElementsAre(Rows{6, 4}));
  EXPECT_THAT(rows_of(second[1].passes), ElementsAre(Rows{2, 0}));
}

TEST(Minibatches, ALongRowIsWorthSeveralShortOnes) {
  const Rows order = {0, 1, 2, 3, 4, 5}, lengths = {10, 100, 30, 20, 30, 10};
  const BatchSizes sizes{.global_size = 6, .micro_size = 1, .tokens_per_pass = 1000};
  EXPECT_THAT(rows_of(plan_minibatches(order, lengths, sizes, 0, 2)[0].passes), ElementsAre(Rows{1}));
  EXPECT_THAT(rows_of(plan_minibatches(order, lengths, sizes, 1, 2)[0].passes), ElementsAre(Rows{0, 2, 3, 4, 5}));
}

// Every row is with one rank, in the minibatch's order, and no rank has more than the shortest-loaded one and one row.
TEST(Minibatches, RanksHaveAboutAsManyTokens) {
  Random random(3, 1);
  for (uint64_t round = 0; round < 200; ++round) {
    const auto number = [&](uint64_t place, int64_t most) {
      return 1 + static_cast<int64_t>(random.uniform(round * 1000 + place) * static_cast<double>(most));
    };
    const auto num_ranks = static_cast<int>(number(0, 5));
    const int64_t num_rows = num_ranks * number(1, 12);
    Rows order(static_cast<size_t>(num_rows)), lengths;
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = 0; i < num_rows; ++i) lengths.push_back(number(10 + static_cast<uint64_t>(i), 500));
    Rows seen, tokens;
    for (int rank = 0; rank < num_ranks; ++rank) {
      const auto plan = plan_minibatches(order, lengths, {.global_size = num_rows, .tokens_per_pass = 1 << 20}, rank, num_ranks);
      Rows own;
      for (const Rows& rows : rows_of(plan[0].passes)) own.insert(own.end(), rows.begin(), rows.end());
      EXPECT_TRUE(std::ranges::is_sorted(own));
      seen.insert(seen.end(), own.begin(), own.end());
      tokens.push_back(0);
      for (const int64_t row : own) tokens.back() += lengths[static_cast<size_t>(row)];
    }
    std::ranges::sort(seen);
    EXPECT_EQ(seen, order);
    EXPECT_LE(std::ranges::max(tokens) - std::ranges::min(tokens), std::ranges::max(lengths));
  }
}

TEST(Minibatches, RowsThatWereNotChosenAreInNoUpdate) {
  const Rows order = {4, 1}, lengths(6, 10);
  const auto plan = plan_minibatches(order, lengths, {.global_size = 2, .micro_size = 1, .tokens_per_pass = 100}, 0, 1);
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_THAT(rows_of(plan[0].passes), ElementsAre(Rows{4, 1}));
}

TEST(Minibatches, APassHasRowsUpToItsTokens) {
  const Rows order = {0, 1, 2, 3, 4, 5, 6, 7}, lengths = {3, 3, 2, 2, 50, 1, 4, 6};
  const auto passes_with = [&](int64_t tokens) {
    return rows_of(plan_minibatches(order, lengths, {.global_size = 8, .micro_size = 2, .tokens_per_pass = tokens}, 0, 1)[0].passes);
  };
  EXPECT_THAT(passes_with(10), ElementsAre(Rows{0, 1, 2, 3}, Rows{4}, Rows{5, 6}, Rows{7}));  // 50 tokens are a pass of their own
  EXPECT_THAT(passes_with(9), ElementsAre(Rows{0, 1, 2}, Rows{3}, Rows{4}, Rows{5, 6}, Rows{7}));
  EXPECT_THAT(passes_with(61), ElementsAre(Rows{0, 1, 2, 3, 4, 5}, Rows{6, 7}));
  EXPECT_THAT(passes_with(71), ElementsAre(order));
}

TEST(Minibatches, TheRowsOfAGroupShareAPass) {
  const Rows order = {5, 0, 3, 1, 4, 2, 6, 7}, lengths = {3, 3, 2, 2, 50, 1, 4, 6}, groups = {0, 0, 1, 1, 2, 2, 3, 3};
  const auto passes_of = [&](int64_t tokens, int rank, int num_ranks) {
    const BatchSizes sizes{.global_size = 8, .micro_size = 2, .tokens_per_pass = tokens};
    const auto plan = plan_minibatches(order, lengths, sizes, rank, num_ranks, {.groups = groups});
    EXPECT_EQ(plan[0].rows, order) << "micro-batches are those of the order";
    return rows_of(plan[0].passes);
  };
  EXPECT_THAT(passes_of(1000, 0, 1), ElementsAre(Rows{4, 5, 0, 1, 2, 3, 6, 7}));
  EXPECT_THAT(passes_of(10, 0, 1), ElementsAre(Rows{4, 5}, Rows{0, 1, 2, 3}, Rows{6, 7}));
  EXPECT_THAT(passes_of(10, 0, 2), ElementsAre(Rows{4, 5}));
  EXPECT_THAT(passes_of(10, 1, 2), ElementsAre(Rows{0, 1, 2, 3}, Rows{6, 7}));
}

// Two prompts of 90 shared tokens with four answers each: a pass has a prompt once.
TEST(Minibatches, SharedTokensCountOnceInAPass) {
  const Rows order = {5, 0, 3, 1, 4, 2, 6, 7}, lengths(8, 100);
  const RowGroups groups{.groups = {0, 0, 0, 0, 1, 1, 1, 1}, .shared = Rows(8, 90), .may_divide = true};
  const auto passes_of = [&](int64_t tokens) {
    const auto plan = plan_minibatches(order, lengths, {.global_size = 8, .micro_size = 2, .tokens_per_pass = tokens}, 0, 1, groups);
    EXPECT_EQ(plan[0].rows, order) << "micro-batches are those of the order";
    for (const Pass& pass : plan[0].passes) EXPECT_TRUE(pass.shares_prompts);
    return rows_of(plan[0].passes);
  };
  EXPECT_THAT(passes_of(260), ElementsAre(Rows{4, 5, 6, 7, 0, 1, 2, 3}));
  EXPECT_THAT(passes_of(259), ElementsAre(Rows{4, 5, 6, 7}, Rows{0, 1, 2, 3}));
  EXPECT_THAT(passes_of(129), ElementsAre(Rows{4, 5, 6}, Rows{7}, Rows{0, 1, 2}, Rows{3}))
      << "a prompt again, where its answers do not fit";
  EXPECT_THAT(passes_of(1), ::testing::SizeIs(8));
}

TEST(Minibatches, AnUpdateSharesWhatItHasOfAPrompt) {
  const Rows order = {5, 0, 3, 1, 4, 2, 6, 7}, lengths(8, 100);
  const RowGroups groups{.groups = {0, 0, 0, 0, 1, 1, 1, 1}, .shared = Rows(8, 90), .may_divide = true};
  const auto plan = plan_minibatches(order, lengths, {.global_size = 4, .micro_size = 2, .tokens_per_pass = 1000}, 0, 1, groups);
  ASSERT_EQ(plan.size(), 2U);
  EXPECT_THAT(rows_of(plan[0].passes), ElementsAre(Rows{5, 0, 1, 3}));
  EXPECT_THAT(rows_of(plan[1].passes), ElementsAre(Rows{4, 6, 7, 2}));
}

TEST(Minibatches, PromptsAreDividedAmongRanksWhereOthersWouldWait) {
  const Rows order = {0, 1, 2, 3, 4, 5, 6, 7}, lengths(8, 100);
  const auto sizes_of = [&](bool may_divide, int num_ranks) {
    const RowGroups groups{.groups = {0, 0, 0, 0, 1, 1, 1, 1}, .shared = Rows(8, 50), .may_divide = may_divide};
    Rows sizes;
    for (int rank = 0; rank < num_ranks; ++rank) {
      const auto plan = plan_minibatches(order, lengths, {.global_size = 8, .tokens_per_pass = 1000}, rank, num_ranks, groups);
      sizes.push_back(plan[0].passes.empty() ? 0 : std::ssize(plan[0].passes[0].rows));
    }
    return sizes;
  };
  EXPECT_THAT(sizes_of(true, 2), ElementsAre(4, 4));
  EXPECT_THAT(sizes_of(true, 4), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(sizes_of(true, 8), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(sizes_of(false, 4), ElementsAre(4, 4, 0, 0)) << "where a prompt's answers are needed together";
}

TEST(Minibatches, SizesThatDoNotDivideAreTold) {
  const Rows order = {0, 1, 2, 3, 4, 5}, lengths(6, 1);
  const auto plan = [&](int64_t global, int64_t micro, int num_ranks) {
    return plan_minibatches(order, lengths, {.global_size = global, .micro_size = micro}, 0, num_ranks);
  };
  EXPECT_EQ(testing::error_of([&] { return plan(6, 4, 1); }),
            "global_batch_size: 6 rows do not divide into micro-batches of 4 on each of 1 rank");
  EXPECT_EQ(testing::error_of([&] { return plan(6, 2, 2); }),
            "global_batch_size: 6 rows do not divide into micro-batches of 2 on each of 2 ranks");
  EXPECT_EQ(testing::error_of([&] { return plan(4, 2, 2); }), "global_batch_size: the 6 rows of a step do not divide into batches of 4");
  EXPECT_EQ(plan(2, 1, 2).size(), 3U);
  const Rows wrong = {0, 6};
  EXPECT_THROW(static_cast<void>(plan_minibatches(wrong, lengths, {.global_size = 2}, 0, 1)), Bug);
}

// The terms of the answer tokens of three rows of the reference's specification (its vectors of REINFORCE and RS losses): the negative
// log-probs where its mask is 1; for REINFORCE times advantages of 1.15, -0.9 and -0.5. The third answer did not end.
const Terms kNegative = {{0.7, 0.5, 1.1}, {0.6, 1.4}, {1.0, 0.3}};
const Terms kWeighted = {{0.7 * 1.15, 0.5 * 1.15, 1.1 * 1.15}, {0.6 * -0.9, 1.4 * -0.9}, {1.0 * -0.5, 0.3 * -0.5}};
const Rows kEnded = {3, 2, 0}, kAll = {3, 2, 2};

double loss_of(const Terms& terms, const Rows& counts, int64_t micro_size, LossNorm norm) {
  const Minibatch minibatch{.rows = {0, 1, 2}};
  const std::vector<double> weights = token_weights(minibatch, counts, micro_size, norm);
  double loss = 0;
  for (size_t row = 0; row < terms.size(); ++row) loss += weights.at(row) * std::accumulate(terms[row].begin(), terms[row].end(), 0.0);
  return loss;
}

TEST(TokenWeights, GiveTheReferencesLosses) {
  constexpr double kTolerance = 1e-9;  // the specification has nine digits
  EXPECT_NEAR(loss_of(kWeighted, kEnded, 1, LossNorm::reference), -0.006111111, kTolerance);
  EXPECT_NEAR(loss_of(kWeighted, kEnded, 3, LossNorm::reference), 0.169, kTolerance);
  EXPECT_NEAR(loss_of(kWeighted, kAll, 3, LossNorm::reference), 0.027857143, kTolerance);
  EXPECT_NEAR(loss_of(kNegative, kAll, 1, LossNorm::reference), 0.805555556, kTolerance);
  EXPECT_NEAR(loss_of(kNegative, kAll, 3, LossNorm::reference), 0.8, kTolerance);
}

TEST(TokenWeights, ByTokensOrSequencesDoNotDependOnMicroBatches) {
  for (const int64_t micro_size : {1, 3}) {
    // 0.845 over 5 tokens; the means of two rows, 0.881666667 and -0.9.
    EXPECT_NEAR(loss_of(kWeighted, kEnded, micro_size, LossNorm::tokens), 0.169, 1e-12);
    EXPECT_NEAR(loss_of(kWeighted, kEnded, micro_size, LossNorm::sequences), (2.645 / 3 - 0.9) / 2, 1e-12);
    EXPECT_NEAR(loss_of(kWeighted, kEnded, micro_size, LossNorm::sum), (2.645 - 1.8) / 2, 1e-12);
  }
}

TEST(TokenWeights, StandBesideTheRowsInTheirOrder) {
  const Minibatch minibatch{.rows = {3, 0, 2, 1}};
  const Rows counts = {1, 0, 4, 2};
  EXPECT_THAT(token_weights(minibatch, counts, 2, LossNorm::reference),
              ElementsAre(DoubleEq(1 / 6.0), DoubleEq(1 / 6.0), DoubleEq(1 / 8.0), 0));
  EXPECT_THAT(token_weights(minibatch, counts, 4, LossNorm::tokens),
              ElementsAre(DoubleEq(1 / 7.0), DoubleEq(1 / 7.0), DoubleEq(1 / 7.0), 0));
  EXPECT_THAT(token_weights(minibatch, counts, 1, LossNorm::sequences),
              ElementsAre(DoubleEq(1 / 6.0), DoubleEq(1 / 3.0), DoubleEq(1 / 12.0), 0));
}

TEST(TokenWeights, AreZeroWhereNothingCounts) {
  const Minibatch minibatch{.rows = {0, 1}};
  const Rows counts = {0, 0};
  for (const LossNorm norm : {LossNorm::reference, LossNorm::tokens, LossNorm::sequences, LossNorm::sum})
    EXPECT_THAT(token_weights(minibatch, counts, 1, norm), ElementsAre(0, 0));
}

TEST(TokenWeights, AreTheSameOnOneRankAndOnTwo) {
  const Rows order = {2, 0, 3, 1, 6, 7, 5, 4}, lengths(8, 9), counts = {1, 0, 5, 3, 2, 7, 4, 0};
  const BatchSizes sizes{.global_size = 4, .micro_size = 2};
  const auto alone = plan_minibatches(order, lengths, sizes, 0, 1);
  for (const int rank : {0, 1}) {
    const auto shared = plan_minibatches(order, lengths, sizes, rank, 2);
    ASSERT_EQ(shared.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i)
      for (const LossNorm norm : {LossNorm::reference, LossNorm::tokens, LossNorm::sequences, LossNorm::sum})
        EXPECT_EQ(token_weights(shared[i], counts, 2, norm), token_weights(alone[i], counts, 2, norm));
  }
}

// 0.845 over 3 rows of up to 10 tokens, whatever is trained on.
TEST(TokenWeights, AConstantIsOfAllRowsAndTheLongestAnswer) {
  const Minibatch minibatch{.rows = {0, 1, 2}};
  EXPECT_THAT(token_weights(minibatch, kEnded, 1, LossNorm::constant, 10), ElementsAre(DoubleEq(1 / 30.0), DoubleEq(1 / 30.0), 0));
  EXPECT_THROW(static_cast<void>(token_weights(minibatch, kEnded, 1, LossNorm::constant)), Bug);
}

}  // namespace
}  // namespace kedge
