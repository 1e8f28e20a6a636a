#include "kedge/critic/local_critic.h"

#include <gtest/gtest.h>

#include "tests/support/toy_critic.h"

namespace kedge {
namespace {

using testing::JudgeFolder;
using testing::same_bits;
using testing::toy_critic;
using testing::toy_critic_batch;

Rollouts two_rollouts() {
  Rollout a, b;
  a.ids = {1, 2, 3, 4};
  b.ids = {7, 8};
  return {std::make_shared<Rollout>(a), std::make_shared<Rollout>(b)};
}

struct Fixture {
  JudgeFolder judge;
  testing::TempFolder run;
  MetricsLog log{true};
  Critic critic{{.folder = run.path(), .start = [this] { return toy_critic(judge); }, .log = log, .journals = false}};
  LocalCritic local{critic};
};

TEST(LocalCritic, GivesAValueBeforeEveryIdButTheFirst) {
  Fixture toy;
  const RolloutValues got = toy.local.values(two_rollouts()).get();
  ASSERT_EQ(got.values.size(), 2U);
  EXPECT_EQ(got.values[0].size(), 3U);
  EXPECT_EQ(got.values[1].size(), 1U);
  EXPECT_TRUE(got.rewards.empty());
  const std::vector<TokenIds> rows = {{1, 2, 3, 4}, {7, 8}};
  const Tensor all = toy.critic.values(rows);
  EXPECT_EQ(got.values[0][2], all[2].item<float>());
  EXPECT_EQ(got.values[1][0], all[4].item<float>());
}

TEST(LocalCritic, ValuesAskedForAfterTrainingHaveSeenIt) {
  Fixture toy, other;
  const auto before = toy.local.values(two_rollouts()).get().values;
  for (uint64_t round = 0; round < 3; ++round) {
    toy.local.train(toy_critic_batch(4, 6, round));
    other.critic.train(toy_critic_batch(4, 6, round), {});
  }
  EXPECT_EQ(toy.local.values(two_rollouts()).get().values, other.local.values(two_rollouts()).get().values);
  EXPECT_NE(toy.local.values(two_rollouts()).get().values, before);
}

TEST(LocalCritic, KnowsTheLossOfTrainingThatIsOver) {
  Fixture toy, other;
  EXPECT_FALSE(toy.local.last_loss());
  const double first = other.critic.train(toy_critic_batch(4, 6, 1), {}).loss.value();
  toy.local.train(toy_critic_batch(4, 6, 1));
  toy.local.save(5, {}).get();
  toy.local.train(toy_critic_batch(4, 6, 2));
  EXPECT_EQ(toy.local.last_loss(), first) << "of the one before that which is under way";
  toy.local.finish_training();
  EXPECT_NE(toy.local.last_loss(), first);
  toy.local.restore(5);
  EXPECT_EQ(toy.local.last_loss(), first) << "the save holds it";
  toy.local.restore(0);
  EXPECT_FALSE(toy.local.last_loss());
}

TEST(LocalCritic, SavesAndGoesBack) {
  Fixture toy;
  toy.local.train(toy_critic_batch(4, 6, 1));
  const std::shared_future<void> saved = toy.local.save(5, {});
  toy.local.train(toy_critic_batch(4, 6, 2));
  saved.get();
  toy.local.restore(5);
  EXPECT_EQ(toy.critic.train_calls(), 1);
  toy.local.restore(0);
  EXPECT_EQ(toy.critic.train_calls(), 0);
}

TEST(LocalCritic, NothingIsSavedAfterTrainingThatFailed) {
  Fixture toy;
  toy.local.train(toy_critic_batch(4, 6, 1));
  toy.local.save(1, {}).get();
  CriticBatch wrong = toy_critic_batch(4, 6, 2);
  wrong.tokens[0] = 100000;  // no such id
  toy.local.train(wrong);
  const std::shared_future<void> saved = toy.local.save(2, {1});
  EXPECT_ANY_THROW(saved.get());
  EXPECT_ANY_THROW(toy.local.finish_training());
  EXPECT_ANY_THROW(toy.local.restore(2));
  EXPECT_EQ(toy.local.restore(1), 1);
}

// Its journal would only grow: the run that it trains goes back to a save.
TEST(LocalCritic, BetweenSavesItWritesNothing) {
  Fixture toy;
  const auto journaled = [&] {
    int64_t bytes = 0;
    for (const Path& file : files_below(toy.run / "journals")) bytes += static_cast<int64_t>(std::filesystem::file_size(file));
    return bytes;
  };
  const int64_t before = journaled();
  toy.local.train(toy_critic_batch(4, 6, 1));
  toy.local.finish_training();
  EXPECT_EQ(journaled(), before);
  toy.local.save(5, {}).get();
  toy.local.train(toy_critic_batch(4, 6, 2));
  toy.local.finish_training();
  Critic again({.folder = toy.run.path(), .start = [&] { return toy_critic(toy.judge); }, .log = toy.log, .journals = false});
  EXPECT_EQ(again.restore(5, "").train_calls, 1);
}

TEST(LocalCritic, TrainingThatFailedIsTold) {
  Fixture toy;
  CriticBatch wrong = toy_critic_batch(4, 6, 1);
  wrong.tokens[0] = 100000;  // no such id
  toy.local.train(wrong);
  EXPECT_ANY_THROW(toy.local.finish_training());
  toy.local.finish_training();
  toy.local.train(toy_critic_batch(4, 6, 1));
  toy.local.finish_training();
  EXPECT_EQ(toy.critic.train_calls(), 1);
}

}  // namespace
}  // namespace kedge
