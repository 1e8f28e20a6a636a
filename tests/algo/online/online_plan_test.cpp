#include "kedge/algo/online/online_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

OnlineSettings settings() {
  OnlineSettings settings;
  settings.name = "reinforce";
  settings.rollouts.num_rollout_samples = 128;
  settings.model.global_batch_size = 64;
  settings.samples_per_prompt = settings.rows_per_prompt = 4;
  return settings;
}

// Spec 21.9: 1000 prompts, 128 a step.
TEST(OnlinePlan, CountsStepsAndUpdates) {
  OnlineSettings some = settings();
  EXPECT_EQ(plan_online(some, 1000, true, 1).steps.steps_per_epoch, 7);
  EXPECT_EQ(plan_online(some, 1000, true, 1).updates_per_step, 8);
  some.loop.max_epochs = 3;
  EXPECT_EQ(plan_online(some, 1000, true, 1).steps.max_steps, 21);
  some.loop.max_steps = 10;
  EXPECT_EQ(plan_online(some, 1000, true, 1).steps.max_steps, 10);
  some.loop.max_steps = 0;
  EXPECT_EQ(plan_online(some, 1000, true, 1).steps.max_steps, 0);
  some.loop.max_steps = -5;
  EXPECT_EQ(plan_online(some, 1000, true, 1).steps.max_steps, 21) << "no cap";
  some.epochs = 2;
  EXPECT_EQ(plan_online(some, 1000, true, 1).updates_per_step, 16);
  some.loop.val_check_interval = some.loop.save_interval = -1;
  EXPECT_EQ(plan_online(some, 1000, true, 1).intervals.validate, 0) << "never";
  EXPECT_EQ(plan_online(some, 1000, true, 1).intervals.save, 0);
}

// The prompts that are left over make no step, and a rank's share need not be whole pieces of the work queue.
TEST(OnlinePlan, OnlyPromptsOfAWholeStepCount) {
  OnlineSettings some = settings();
  some.rollouts.num_rollout_samples = 512;
  some.loop.max_epochs = 3;
  const StepPlan steps = plan_online(some, 1000, true, 1).steps;
  EXPECT_EQ(steps.steps_per_epoch, 1);
  EXPECT_EQ(steps.max_steps, 3);
  EXPECT_EQ(steps.epoch_of(2), 2);
  some.rollouts.num_rollout_samples = 48;
  some.rollouts.rollout_micro_batch_size = 32;
  EXPECT_EQ(plan_online(some, 1000, true, 2).updates_per_step, 3);
}

TEST(OnlinePlan, WarnsWhereAnotherPolicyIsDrawnFromThanIsTrained) {
  const auto warning = [](const auto& change) {
    OnlineSettings some = settings();
    change(some.rollouts);
    ::testing::internal::CaptureStderr();
    warn_of_settings(some);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(warning([](auto&) {}), "");
  EXPECT_EQ(warning([](auto& rollouts) { rollouts.sampling_params.top_p = 0; }), "") << "0 draws from all, as 1 does";
  const auto biased = HasSubstr("model.reinforce.sampling_params: answers are not sampled from the policy that is trained");
  EXPECT_EQ(warning([](auto& rollouts) { rollouts.sampling_params.temperature = 0.7; }), "") << "log-probs have that temperature too";
  const auto at_one = [](auto& rollouts) {
    rollouts.sampling_params.temperature = 0.7;
    rollouts.logprob_temperature = LogprobTemperature::one;
  };
  EXPECT_THAT(warning(at_one), HasSubstr("model.reinforce.logprob_temperature=one: answers are sampled at temperature 0.7"));
  EXPECT_THAT(warning([](auto& rollouts) { rollouts.sampling_params.top_k = 50; }), biased);
  EXPECT_THAT(warning([](auto& rollouts) { rollouts.sampling_params.top_p = 0.9; }), biased);
  EXPECT_THAT(warning([](auto& rollouts) { rollouts.sampling_params.repetition_penalty = 1.1; }), biased);
  EXPECT_THAT(warning([](auto& rollouts) { rollouts.sampling_params.use_greedy = true; }),
              HasSubstr("all answers to a prompt are identical"));
  EXPECT_THAT(warning([](auto& rollouts) { rollouts.length_params.min_length = 2; }), HasSubstr("length_params.min_length"));
}

// The reference counts trainer steps, or batches of prompts, although the rate moves with every update.
TEST(OnlinePlan, TheHorizonIsTheReferencesOrTheTrueOne) {
  OnlineSettings some = settings();
  some.loop.max_epochs = 2;
  EXPECT_EQ(plan_online(some, 1000, true, 1).horizon, 32) << "ceil(1000 / 64) an epoch";
  EXPECT_EQ(plan_online(some, 1000, true, 2).horizon, 32) << "ceil(500 / 32)";
  some.loop.max_steps = 5;
  EXPECT_EQ(plan_online(some, 1000, true, 1).horizon, 5);
  some.model.optim.sched.horizon = ScheduleHorizon::optimizer_steps;
  EXPECT_EQ(plan_online(some, 1000, true, 1).horizon, 40);
}

// 7 steps of 128 an epoch; 3 steps of 256 were made, so 128 of 896 prompts are left.
TEST(OnlinePlan, AnotherNumberOfPromptsGoesOnWithThoseThatAreLeft) {
  const OnlinePlan plan = plan_online(settings(), 1000, true, 1);
  const OnlinePlan rest = continue_plan(plan, settings(), {.step = 3, .consumed_samples = 768, .num_updates = 48});
  EXPECT_EQ(rest.steps.max_steps, 4);
  EXPECT_EQ(rest.intervals.max_steps, 4);
  EXPECT_EQ(rest.num_updates, 48 + 8);
  EXPECT_EQ(rest.horizon, plan.horizon) << "trainer steps";
  EXPECT_EQ(continue_plan(plan, settings(), {.step = 3, .consumed_samples = 384}).steps.max_steps, 7);
}

// The cosine ends with the last update, however many the steps until now had; after 3 of 7 steps of 8 updates nothing has changed.
TEST(OnlinePlan, TheTrueHorizonCountsTheUpdatesThatWereMade) {
  OnlineSettings some = settings();
  some.model.optim.sched.horizon = ScheduleHorizon::optimizer_steps;
  const auto horizon = [&](const Position& position) { return continue_plan(plan_online(some, 1000, true, 1), some, position).horizon; };
  EXPECT_EQ(horizon({.step = 3, .consumed_samples = 384, .num_updates = 24}), 56);
  EXPECT_EQ(horizon({.step = 3, .consumed_samples = 768, .num_updates = 48}), 48 + 8) << "256 prompts a step until now";
  EXPECT_EQ(horizon({.step = 8, .consumed_samples = 1024, .num_updates = 64}), 64) << "no steps are left";
  some.epochs = 2;
  EXPECT_EQ(horizon({.step = 3, .consumed_samples = 384, .num_updates = 24}), 24 + 4 * 16);
  some.model.global_batch_size = 512;
  EXPECT_EQ(horizon({.step = 3, .consumed_samples = 384, .num_updates = 24}), 24 + 4 * 2);
  some.max_batches = 3;
  EXPECT_EQ(horizon({.step = 3, .consumed_samples = 768, .num_updates = 48}), 48 + 4 * 2) << "dynamic sampling keeps the steps";
}

// Prompts of 128 and responses of 256: 127 tokens once, and 257 for each of four, of 384 each.
TEST(OnlinePlan, APromptCountsOnceForItsResponses) {
  OnlineSettings some = settings();
  const OnlineLengths lengths{.context = 384, .max_new = 256, .val_max_new = 256, .max_prompt = 128};
  some.model.global_batch_size = 512;
  EXPECT_EQ(longest_group(some, lengths), 384 + 3 * 257);
  EXPECT_DOUBLE_EQ(computed_share(some, 384, 128), (127.0 / 4 + 257) / 384);
  some.model.global_batch_size = 1;
  EXPECT_NEAR(computed_share(some, 384, 128), 1, 0.01) << "an update of one response shares nothing";
  some.rollouts.share_prompts = false;
  EXPECT_EQ(longest_group(some, lengths), 4 * 384);
  EXPECT_EQ(computed_share(some, 384, 128), 1);
}

TEST(OnlinePlan, WhatDoesNotDivideIsRefusedByName) {
  const auto error = [](const auto& change, int64_t num_prompts = 1000, int num_ranks = 1) {
    OnlineSettings some = settings();
    change(some);
    return error_of([&] { return plan_online(some, num_prompts, true, num_ranks); });
  };
  EXPECT_EQ(error([](auto&) {}, 1),
            "model.data.data_prefix: 1 prompt is fewer than one step takes, 128 (model.reinforce.num_rollout_samples)");
  EXPECT_EQ(error([](auto& some) { some.model.micro_batch_size = 3; }),
            "model.global_batch_size: 64 answers do not divide into micro-batches of 3 on 1 rank");
  EXPECT_EQ(error([](auto&) {}, 1000, 3), "model.global_batch_size: 64 answers do not divide into micro-batches of 1 on 3 ranks");
  EXPECT_EQ(
      error([](auto& some) { some.rows_per_prompt = 1, some.model.global_batch_size = 96; }),
      "model.global_batch_size: the 128 answers of a step (128 prompts x 1) do not divide into updates of 96; expected a divisor of 128");
  EXPECT_THAT(error([](auto& some) { some.loop.save_interval = 15; }), HasSubstr("trainer.reinforce.save_interval: 15"));
}

TEST(OnlineLengths, PromptAndAnswerShareTheContext) {
  OnlineSettings some = settings();
  some.model.encoder_seq_length = some.model.data.seq_length = 100;
  const OnlineLengths half = online_lengths(some, 1000);
  EXPECT_EQ(half.context, 100);
  EXPECT_EQ(half.max_new, 50);
  EXPECT_EQ(half.max_prompt, 50);
  EXPECT_EQ(online_lengths(some, 64).max_new, 32) << "the network's own limit counts";
  some.rollouts.length_params.max_length = 80;
  EXPECT_EQ(online_lengths(some, 1000).max_prompt, 20);
  some.rollouts.val_length_params.emplace().max_length = 90;
  EXPECT_EQ(online_lengths(some, 1000).max_prompt, 10);
  EXPECT_EQ(online_lengths(some, 1000).max_new, 80);
  some.rollouts.length_params.max_length = 100;
  EXPECT_THAT(
      error_of([&] { return online_lengths(some, 1000); }),
      HasSubstr("model.reinforce.length_params.max_length: answers of up to 100 tokens leave no room for a prompt in a context of 100"));
}

}  // namespace
}  // namespace kedge
