// Online training on the 2 or 3 ranks that mpirun has started, beside a run that works alone.
#include <gtest/gtest.h>

#include "kedge/rollout/rollout_exchange.h"

#include "tests/support/online_toy.h"
#include "tests/support/ranks.h"

namespace kedge {
namespace {

using testing::OnlineToy;
using testing::world;

// What a rank knows of its own prompt: two answers.
RolloutRows own_rows(int rank) {
  RolloutRows rows;
  for (const int64_t sample : {1, 0}) {
    Rollout rollout{.prompt_id = 40 + rank,
                    .sample = sample,
                    .ids = {1, 2, static_cast<TokenId>(10 * rank + sample)},
                    .prompt_length = 2,
                    .finished = sample == 1,
                    .logprobs = {-0.125F * static_cast<float>(rank + 1)},
                    .prompt = "question",
                    .response = rank == 0 ? "" : "answer"};
    rows.push_back({.rollout = std::make_shared<const Rollout>(std::move(rollout)), .slot = rank});
  }
  return rows;
}

TEST(OnlineRanks, EveryRankGetsToKnowAllAnswers) {
  const int size = world().size(), last = size - 1;
  // The last rank has nothing to tell.
  RolloutRows rows = exchange_rollouts(world(), world().rank() == last ? RolloutRows() : own_rows(world().rank()));
  ASSERT_EQ(std::ssize(rows), 2 * last);
  for (int i = 0; i < 2 * last; ++i) {
    const RolloutRow& row = rows[static_cast<size_t>(i)];
    const int rank = i / 2;
    EXPECT_EQ(row.slot, rank);
    EXPECT_EQ(row.rollout->prompt_id, 40 + rank);
    EXPECT_EQ(row.rollout->sample, i % 2);
    EXPECT_EQ(row.rollout->ids, (TokenIds{1, 2, 10 * rank + i % 2}));
    EXPECT_EQ(row.rollout->finished, i % 2 == 1);
    EXPECT_EQ(row.rollout->logprobs, std::vector<float>{-0.125F * static_cast<float>(rank + 1)});
    EXPECT_EQ(row.rollout->response, rank == 0 ? "" : "answer");
  }
  std::vector<int64_t> own;
  for (int64_t i = 0; i < 2 * last; ++i)
    if (i % size == world().rank()) {
      own.push_back(i);
      rows[static_cast<size_t>(i)].reward = {.value = static_cast<double>(i) / 3, .error = i == 1 ? "none" : "", .parts = {{"a", 0.1}}};
      rows[static_cast<size_t>(i)].logprobs = {static_cast<float>(i), 2};
      rows[static_cast<size_t>(i)].entropy = 0.5;
    }
  exchange_rewards(world(), own, rows);
  exchange_logprobs(world(), own, rows);
  for (int64_t i = 0; i < 2 * last; ++i) {
    const RolloutRow& row = rows[static_cast<size_t>(i)];
    EXPECT_EQ(row.reward.value, static_cast<double>(i) / 3);
    EXPECT_EQ(row.reward.failed(), i == 1);
    ASSERT_EQ(row.reward.parts.size(), 1U);
    EXPECT_EQ(row.reward.parts[0].second, 0.1);
    EXPECT_EQ(row.logprobs, (std::vector<float>{static_cast<float>(i), 2}));
    EXPECT_EQ(row.entropy, 0.5);
  }
}

struct Step {
  std::vector<TokenIds> ids;
  std::vector<double> baselines, losses;  // and the validation's reward behind them
};

struct Sizes {
  int64_t num_prompts = 4;
  Unfinished unfinished = Unfinished::keep;
  Sharding sharding = Sharding::optimizer;
};

// Some steps of a run on `group`.
std::vector<Step> run(const Group& group, bool use_queue, const Sizes& sizes) {
  OnlineToy toy(testing::byte_model({}, {.trainable = true, .shards = {.kind = sizes.sharding, .shard = group}}));
  toy.reinforce.trainer.loop.initial_policy_kl_penalty = 0.1;
  toy.reinforce.trainer.loop.num_rollouts_per_prompt = 6;
  toy.reinforce.model.global_batch_size = sizes.num_prompts * 6;  // divides by 2 and by 3
  toy.reinforce.model.rollouts.num_rollout_samples = toy.reinforce.model.rollouts.num_val_samples = sizes.num_prompts;
  toy.reinforce.trainer.loop.unfinished = sizes.unfinished;
  toy.reinforce.trainer.loop.batch_iterator = {.use_flask = use_queue, .port = 0};
  toy.reinforce.model.rollouts.rollout_micro_batch_size = 1;
  OnlineParts parts = toy.parts();
  parts.group = group;
  ReinforceTrainer trainer(parts, toy.reinforce);
  std::vector<Step> steps(5);
  for (Step& step : steps) {
    OnlineStep online = trainer.generate_rollouts();
    trainer.generate_reinforce_data(online);
    for (const RolloutRow& row : online.rows) {
      step.ids.push_back(row.rollout->ids);
      step.baselines.push_back(row.baseline);
    }
    for (const Metrics& update : trainer.run_training(online)) step.losses.push_back(*update.find("train_optim/loss"));
    step.losses.push_back(*trainer.run_validation().metrics.find("val_rollouts/rewards"));
  }
  return steps;
}

void expect_as_alone(const Sizes& sizes) {
  const std::vector<Step> alone = run(Group::single(), false, sizes);
  for (const bool use_queue : {false, true}) {
    const std::vector<Step> together = run(world(), use_queue, sizes);
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(together[i].ids, alone[i].ids) << "step " << i;
      ASSERT_EQ(together[i].baselines.size(), alone[i].baselines.size());
      // Gradients are summed in another order, so the weights differ by roundings from the second step on.
      for (size_t k = 0; k < alone[i].baselines.size(); ++k) EXPECT_NEAR(together[i].baselines[k], alone[i].baselines[k], 1e-5);
      for (size_t k = 0; k < alone[i].losses.size(); ++k) EXPECT_NEAR(together[i].losses[k], alone[i].losses[k], 1e-5);
    }
  }
}

TEST(OnlineRanks, SeeTheSamePromptsSamplesAndBaselinesAsOneAlone) { expect_as_alone({}); }

// Fewer prompts than ranks, in training and in validation.
TEST(OnlineRanks, OneThatAnswersNothingTakesPartInAllElse) { expect_as_alone({.num_prompts = 1}); }

// Hardly any answer ends, so that most of the time no rank has anything to learn from.
TEST(OnlineRanks, OneThatLearnsNothingTakesPartInAllElse) { expect_as_alone({.num_prompts = 1, .unfinished = Unfinished::drop}); }

// An update may have fewer prompts than there are ranks.
TEST(OnlineRanks, OneWithoutRowsReportsTheMetricsOfTheOthers) {
  const auto model = testing::byte_model({}, {.trainable = true, .shards = {.shard = world()}});
  PolicyOptions options;
  options.optim.sched = {.name = ScheduleKind::constant, .warmup_steps = 0};
  options.num_updates = 1;
  Policy policy(*model, world(), options);
  RolloutRows rows(1);
  rows[0].rollout = std::make_shared<const Rollout>(Rollout{.ids = {1, 2, 3, 4}, .prompt_length = 2});
  Minibatch minibatch{.rows = {0}};
  if (world().rank() == world().size() - 1) minibatch.passes.push_back({.rows = {0}});
  const TokenLoss loss = [](const PassTokens& tokens) {
    return PassLoss(-tokens.logprobs, {{.name = "ratio", .values = at::full({2}, 1.5), .base = 1}});
  };
  const Metrics metrics = policy.update({.minibatch = minibatch, .weights = {0.5}, .loss = loss, .told = {0.5}}, rows);
  EXPECT_EQ(metrics.find("ratio"), 1.5);
  EXPECT_GT(metrics.find("loss"), 0);
}

// Once for generation and the log-probabilities that are recomputed; the reference is a model of its own.
TEST(OnlineRanks, AValidationGathersThePolicyOnce) {
  OnlineToy toy(testing::byte_model({}, {.trainable = true, .shards = {.kind = Sharding::all, .shard = world()}}));
  toy.reinforce.trainer.loop.initial_policy_kl_penalty = 0.1;
  toy.reinforce.model.rollouts.logprobs = LogprobSource::trainer;
  toy.reinforce.model.rollouts.reference = ReferencePlace::resident;
  toy.reinforce.model.global_batch_size = 12;
  toy.reinforce.trainer.loop.num_rollouts_per_prompt = 3;
  OnlineParts parts = toy.parts();
  parts.group = world();
  ReinforceTrainer trainer(parts, toy.reinforce);
  const int64_t before = toy.model->parameters().placement();
  EXPECT_NEAR(*trainer.run_validation().metrics.find("val_rollouts/init_policy_kl"), 0, 1e-6);
  EXPECT_EQ(toy.model->parameters().placement(), before + 1);
}

// Not by a bit.
TEST(OnlineRanks, WhatIsShardedChangesNothing) {
  const std::vector<Step> none = run(world(), false, {.sharding = Sharding::none});
  for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients, Sharding::all}) {
    const std::vector<Step> other = run(world(), false, {.sharding = sharding});
    for (size_t i = 0; i < none.size(); ++i) {
      EXPECT_EQ(other[i].ids, none[i].ids) << static_cast<int>(sharding);
      EXPECT_EQ(other[i].baselines, none[i].baselines) << static_cast<int>(sharding);
      EXPECT_EQ(other[i].losses, none[i].losses) << static_cast<int>(sharding);
    }
  }
}

}  // namespace
}  // namespace kedge
