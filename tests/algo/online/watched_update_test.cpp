#include "kedge/algo/online/watched_update.h"

#include <gtest/gtest.h>

#include "kedge/algo/online/policy_losses.h"

#include "tests/support/tiny_training.h"

namespace kedge {
namespace {

PolicyOptions options_with(double lr) {
  PolicyOptions options;
  options.optim.name = OptimizerKind::sgd;
  options.optim.lr = lr;
  options.optim.sched = {.name = ScheduleKind::constant, .warmup_steps = 0};
  options.num_updates = 10;
  return options;
}

// Two answers of three tokens and one.
RolloutRows two_answers(double advantage) {
  RolloutRows rows(2);
  rows[0].rollout = std::make_shared<const Rollout>(Rollout{.ids = {5, 6, 7, 8, 9}, .prompt_length = 2});
  rows[1].rollout = std::make_shared<const Rollout>(Rollout{.ids = {10, 11, 12}, .prompt_length = 2});
  for (RolloutRow& row : rows) row.advantage = advantage, row.trains = true;
  return rows;
}

struct WatchedToy {
  std::unique_ptr<Model> model = testing::byte_model();
  Policy policy;
  Minibatch minibatch{.rows = {0, 1}, .passes = {{{0, 1}}}};
  StepEvidence seen;

  explicit WatchedToy(double lr) : policy(*model, Group::single(), options_with(lr)) {}
  void update(RolloutRows& rows, std::vector<double> weights = {0.1, 0.1}) {
    const TokenLoss loss = [](const PassTokens& tokens) { return reinforce_terms(tokens.logprobs, tokens.advantages); };
    static_cast<void>(watched_update(policy, Group::single(), {minibatch, std::move(weights), loss}, rows, false, seen));
  }
};

TEST(WatchedUpdate, TellsThatItLearned) {
  WatchedToy toy(0.1);
  RolloutRows rows = two_answers(1);
  toy.policy.logprobs(toy.minibatch.passes, rows);
  toy.update(rows);
  EXPECT_TRUE(toy.seen.learned);
  EXPECT_TRUE(toy.seen.changed);
  EXPECT_EQ(toy.seen.ratio_gap, 0);
  EXPECT_EQ(toy.seen.num_sampled, 4);
  EXPECT_EQ(toy.seen.num_weighted, 4);
  EXPECT_EQ(toy.policy.num_updates(), 1);
}

TEST(WatchedUpdate, WithoutARateOrAGradientNothingIsLearned) {
  WatchedToy resting(0), idle(0.1);
  RolloutRows rows = two_answers(1), equal = two_answers(0);
  resting.update(rows);
  idle.update(equal);
  EXPECT_FALSE(resting.seen.learned);
  EXPECT_FALSE(idle.seen.learned);
  EXPECT_FALSE(resting.seen.ratio_gap) << "the rows have no log-probs to compare with";
}

// A rate that is lost in fp32 beside the weights.
TEST(WatchedUpdate, TellsThatNoWeightChanged) {
  WatchedToy toy(1e-300);
  RolloutRows rows = two_answers(1);
  toy.update(rows);
  EXPECT_TRUE(toy.seen.learned);
  EXPECT_FALSE(toy.seen.changed);
}

TEST(WatchedUpdate, MeasuresRatiosThatAreNotOne) {
  WatchedToy toy(0.1);
  RolloutRows rows = two_answers(1);
  toy.policy.logprobs(toy.minibatch.passes, rows);
  for (RolloutRow& row : rows)
    for (float& logprob : row.logprobs) logprob -= 0.5F;
  toy.update(rows);
  EXPECT_NEAR(toy.seen.ratio_gap.value(), 0.5, 1e-6);
}

TEST(WatchedUpdate, TellsTokensThatTheLossLeavesOut) {
  WatchedToy toy(0.1);
  RolloutRows rows = two_answers(1);
  toy.update(rows, {0.1, 0});
  EXPECT_EQ(toy.seen.num_sampled, 4);
  EXPECT_EQ(toy.seen.num_weighted, 3);
}

}  // namespace
}  // namespace kedge
