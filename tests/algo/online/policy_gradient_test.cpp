#include "kedge/algo/online/policy_gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "tests/support/expect_error.h"
#include "tests/support/online_toy.h"

namespace kedge {
namespace {

using testing::OnlineToy;
using testing::shown;

double number(const StepReport& report, const std::string& name) { return report.metrics.find(name).value_or(NAN); }

// The distribution that is sampled is the one that is trained: engine, policy, reference and updates agree to the bit.
TEST(PolicyGradient, RatiosAreOneAtEveryTemperature) {
  for (const double temperature : {0.6, 1.0, 1.5}) {
    std::vector<std::string> seen;
    for (const LogprobSource source : {LogprobSource::automatic, LogprobSource::trainer}) {
      OnlineToy toy;
      toy.reinforce.model.rollouts.sampling_params.temperature = temperature;
      toy.reinforce.model.rollouts.logprobs = source;
      toy.reinforce.model.global_batch_size = 16;
      toy.reinforce.trainer.loop.ratio = RatioKind::clip;
      toy.reinforce.trainer.loop.reference_policy_kl_penalty = 0.01;
      const auto trainer = toy.reinforce_trainer();
      std::string text;
      for (int i = 0; i < 3; ++i) {
        const StepReport report = trainer->train_step();
        EXPECT_EQ(number(report, "train_rollouts/logprob_gap_max"), 0) << temperature;
        EXPECT_EQ(*report.updates[0].find("train_optim/ratio"), 1) << temperature;
        EXPECT_EQ(*report.updates[0].find("train_optim/clip_fraction"), 0) << temperature;
        EXPECT_EQ(number(report, "train_rollouts/init_policy_kl") == 0, i == 0) << temperature;
        text += shown(report);
      }
      seen.push_back(text);
    }
    EXPECT_EQ(seen[0], seen[1]);
  }
}

// A pass for log-probabilities before the updates is made only where the step's update cannot give them in time.
TEST(PolicyGradient, TheOnlyUpdateGivesTheLogprobs) {
  const auto has_logprobs = [](const std::function<void(ReinforceConfig&)>& change) {
    OnlineToy toy;
    toy.reinforce.model.rollouts.logprobs = LogprobSource::trainer;
    toy.reinforce.model.global_batch_size = 16;
    toy.reinforce.model.rollouts.tokens_per_pass = 96;  // a prompt's responses, each with a prompt of its own
    toy.reinforce.model.rollouts.share_prompts = false;
    toy.reinforce.trainer.loop.initial_policy_kl_penalty = 0.01;
    change(toy.reinforce);
    const auto trainer = toy.reinforce_trainer();
    OnlineStep step = trainer->generate_rollouts();
    const bool has = !step.rows[0].logprobs.empty();
    trainer->score(step);
    static_cast<void>(trainer->run_training(step));
    for (const RolloutRow& row : step.rows) EXPECT_FALSE(row.logprobs.empty());
    return has;
  };
  EXPECT_FALSE(has_logprobs([](ReinforceConfig&) {}));
  EXPECT_FALSE(has_logprobs([](ReinforceConfig& config) { config.trainer.loop.baseline = Baseline::group_norm; }));
  EXPECT_TRUE(has_logprobs([](ReinforceConfig& config) { config.trainer.loop.baseline = Baseline::batch_mean; }));
  EXPECT_TRUE(has_logprobs([](ReinforceConfig& config) { config.trainer.loop.rollout_correction = RolloutCorrection::tis; }));
  EXPECT_TRUE(has_logprobs([](ReinforceConfig& config) { config.trainer.loop.epochs = 2; }));
  EXPECT_TRUE(has_logprobs([](ReinforceConfig& config) { config.model.global_batch_size = 8; }));
  EXPECT_TRUE(has_logprobs([](ReinforceConfig& config) { config.model.rollouts.tokens_per_pass = 95; }))
      << "a prompt's responses do not fit";
  EXPECT_FALSE(has_logprobs([](ReinforceConfig& config) {
    config.model.rollouts.tokens_per_pass = 95;
    config.model.rollouts.share_prompts = true;
  }));
}

// Only the order in which gradients are summed depends on it.
TEST(PolicyGradient, SharingPromptsHardlyChangesALoss) {
  for (const int64_t tokens : {4096, 40})
    for (const int64_t batch : {16, 8}) {
      std::vector<std::vector<double>> losses;
      for (const bool shares : {false, true}) {
        OnlineToy toy;
        toy.reinforce.model.global_batch_size = batch;
        toy.reinforce.model.rollouts.tokens_per_pass = tokens;
        toy.reinforce.model.rollouts.share_prompts = shares;
        toy.reinforce.trainer.loop.initial_policy_kl_penalty = 0.01;
        toy.reinforce.trainer.loop.ratio = RatioKind::clip;
        const auto trainer = toy.reinforce_trainer();
        losses.emplace_back();
        for (int i = 0; i < 3; ++i) {
          const StepReport report = trainer->train_step();
          EXPECT_EQ(number(report, "train_rollouts/logprob_gap_max"), 0);
          EXPECT_EQ(*report.updates[0].find("train_optim/ratio"), 1);
          for (const Metrics& update : report.updates) losses.back().push_back(*update.find("train_optim/loss"));
        }
      }
      ASSERT_EQ(losses[0].size(), losses[1].size());
      for (size_t i = 0; i < losses[0].size(); ++i) EXPECT_NEAR(losses[0][i], losses[1][i], 1e-5);
    }
}

// Passes that the update is divided into do not matter for what is learned from a prompt.
TEST(PolicyGradient, ResponsesAreScoredInTheirOwnPass) {
  std::vector<std::vector<double>> advantages;
  for (const LogprobSource source : {LogprobSource::engine, LogprobSource::trainer}) {
    OnlineToy toy;
    toy.reinforce.model.rollouts.logprobs = source;
    toy.reinforce.model.global_batch_size = 16;
    toy.reinforce.model.rollouts.tokens_per_pass = 96;
    toy.reinforce.trainer.loop.initial_policy_kl_penalty = 1;
    const auto trainer = toy.reinforce_trainer();
    static_cast<void>(trainer->train_step());
    OnlineStep step = trainer->generate_rollouts();
    trainer->score(step);
    static_cast<void>(trainer->run_training(step));
    ASSERT_GT(step.minibatches[0].passes.size(), 1U);
    advantages.emplace_back();
    for (const RolloutRow& row : step.rows) {
      EXPECT_NE(row.reward_with_kl, row.reward.value);
      advantages.back().push_back(row.advantage);
    }
  }
  EXPECT_EQ(advantages[0], advantages[1]);
}

// Micro-batches are NeMo-Aligner's way to average; elsewhere metrics, like losses, are means over tokens.
TEST(PolicyGradient, MetricsAreMeansOverTokens) {
  std::vector<std::string> seen;
  for (const int64_t micro_size : {1, 4}) {
    OnlineToy toy;
    toy.reinforce.model.micro_batch_size = micro_size;
    toy.reinforce.model.global_batch_size = 16;
    toy.reinforce.trainer.loop.ratio = RatioKind::clip;
    toy.reinforce.trainer.loop.loss_norm = LossNorm::tokens;
    toy.reinforce.trainer.loop.epochs = 2;
    const auto trainer = toy.reinforce_trainer();
    const StepReport first = trainer->train_step(), second = trainer->train_step();
    EXPECT_NE(*second.updates[1].find("train_optim/ratio"), 1);
    seen.push_back(shown(first) + shown(second));
  }
  EXPECT_EQ(seen[0], seen[1]);
}

// An engine whose log-probabilities differ from training's, as on a GPU: those of a row stay what ratios are of, also where the first
// update has seen training's own.
TEST(PolicyGradient, EveryEpochComparesWithTheEnginesLogprobs) {
  OnlineToy toy;
  toy.reinforce.model.rollouts.logprobs = LogprobSource::engine;
  toy.reinforce.model.optim.lr = 0;
  toy.reinforce.trainer.loop.epochs = 2;
  toy.reinforce.trainer.loop.ratio = RatioKind::clip;
  const auto trainer = toy.reinforce_trainer();
  OnlineStep step = trainer->generate_rollouts();
  for (RolloutRow& row : step.rows) {
    Rollout shifted = *row.rollout;
    for (float& logprob : shifted.logprobs) logprob -= 0.25F;
    row.logprobs = shifted.logprobs;
    row.rollout = std::make_shared<const Rollout>(std::move(shifted));
  }
  trainer->score(step);
  const std::vector<Metrics> updates = trainer->run_training(step);
  ASSERT_EQ(updates.size(), 4U);
  for (const Metrics& update : updates) EXPECT_NEAR(*update.find("train_optim/ratio"), std::exp(0.25), 1e-5);
}

TEST(PolicyGradient, ACorrectionNeedsLogprobsOfTraining) {
  OnlineToy toy;
  toy.reinforce.trainer.loop.rollout_correction = RolloutCorrection::tis;
  toy.reinforce.model.rollouts.logprobs = LogprobSource::engine;
  EXPECT_EQ(testing::error_of([&] { return settings_of(toy.reinforce); }),
            "trainer.reinforce.rollout_correction: compares training's log-probabilities with the engine's, and "
            "model.reinforce.logprobs=engine takes the engine's for both; expected logprobs=auto or trainer");
}

TEST(PolicyGradient, SaysWhichLimitsHaveNoEffect) {
  PolicyGradientLoop loop;
  loop.ratio_clip_max = 0.28;
  loop.sequence_level_importance_ratios = RatioLevel::sequence;
  const auto hints = [&] { return make_policy_gradient(loop, 0, "grpo")->hints(); };
  ASSERT_EQ(hints().size(), 2U);
  EXPECT_EQ(hints()[0], "trainer.grpo.ratio_clip_max: has no effect with ratio=none");
  EXPECT_EQ(hints()[1], "trainer.grpo.sequence_level_importance_ratios: has no effect with ratio=none");
  loop.ratio = RatioKind::cispo;
  ASSERT_EQ(hints().size(), 1U);
  EXPECT_EQ(hints()[0], "trainer.grpo.ratio_clip_max: has no effect with ratio=cispo, whose limit is cispo_ratio_max");
  loop.ratio = RatioKind::clip;
  EXPECT_TRUE(hints().empty());
}

// As before this key existed: log-probabilities at 1 whatever is sampled.
TEST(PolicyGradient, LogprobsAtOneIgnoreTheTemperature) {
  OnlineToy toy;
  toy.reinforce.model.rollouts.sampling_params.temperature = 0.6;
  toy.reinforce.model.rollouts.logprob_temperature = LogprobTemperature::one;
  const OnlineStep at_one = toy.reinforce_trainer()->generate_rollouts();
  toy.reinforce.model.rollouts.logprob_temperature = LogprobTemperature::sampling;
  const OnlineStep at_its_own = toy.reinforce_trainer()->generate_rollouts();
  ASSERT_EQ(at_one.rows.size(), at_its_own.rows.size());
  EXPECT_EQ(at_one.rows[0].rollout->ids, at_its_own.rows[0].rollout->ids);
  EXPECT_NE(at_one.rows[0].logprobs, at_its_own.rows[0].logprobs);
  RolloutRows again = at_one.rows;
  const Pass pass{{0}};
  add_policy_logprobs(*toy.model, std::span(&pass, 1), again);
  EXPECT_EQ(again[0].logprobs, at_one.rows[0].logprobs);
  add_policy_logprobs(*toy.model, std::span(&pass, 1), again, 0.6);
  EXPECT_EQ(again[0].logprobs, at_its_own.rows[0].logprobs);
}

// Half of the prompts get the same reward for every response.
RowReward judge_odd_prompts(const Rollout& rollout) {
  return {.value = rollout.prompt_id % 2 == 0 ? 1 : static_cast<double>(rollout.sample)};
}

// Those are left out, and others take their places.
TEST(PolicyGradient, DynamicSamplingTrainsOnGroupsWithASpread) {
  OnlineToy toy;
  toy.reinforce.trainer.loop.use_dynamic_sampling = true;
  toy.rewards.judge = judge_odd_prompts;
  const auto trainer = toy.reinforce_trainer();
  double consumed = 0;
  for (int i = 0; i < 3; ++i) {
    OnlineStep step = trainer->generate_rollouts();
    ASSERT_EQ(step.rows.size(), 16U);
    std::set<int64_t> prompts, slots;
    for (const RolloutRow& row : step.rows) prompts.insert(row.rollout->prompt_id), slots.insert(row.slot);
    EXPECT_EQ(slots.size(), 4U);
    for (const int64_t prompt : prompts) EXPECT_EQ(prompt % 2, 1);
    const double before = std::exchange(consumed, static_cast<double>(trainer->counters().at("consumed_samples")));
    EXPECT_GE(consumed, before + 8) << "two batches at least";
  }
}

// A step is a batch, however many it took: its plan stays, also when it goes on without.
TEST(PolicyGradient, ARunGoesOnWithoutDynamicSampling) {
  OnlineToy toy;
  toy.reinforce.trainer.loop.use_dynamic_sampling = true;
  toy.rewards.judge = judge_odd_prompts;
  const auto first = toy.reinforce_trainer();
  static_cast<void>(first->train_step());
  EXPECT_GE(first->counters().at("consumed_samples"), 8);
  StateSnapshot state(true);
  static_cast<void>(first->save(state));
  state.write(toy.temp / "state");
  toy.reinforce.trainer.loop.use_dynamic_sampling = false;
  const auto second = toy.reinforce_trainer();
  second->load(StateFiles(toy.temp / "state"));
  static_cast<void>(second->train_step());
  Checkpoint checkpoint;
  checkpoint.meta.counters = second->counters();
  checkpoint.meta.counters["step"] = 2;
  const OnlinePlan& plan = second->plan();
  EXPECT_EQ(continue_plan(plan, settings_of(toy.reinforce), position_of(checkpoint)).steps.max_steps, plan.steps.max_steps);
}

// 16 responses a step: 4 updates in the first step, 1 in each of the two that are left.
TEST(PolicyGradient, TheCosineOfAResumedRunEndsWithItsLastUpdate) {
  OnlineToy toy;
  ScheduleConfig& sched = toy.reinforce.model.optim.sched;
  sched = {.warmup_steps = 0, .constant_steps = 0, .horizon = ScheduleHorizon::optimizer_steps};
  toy.reinforce.trainer.loop.max_steps = 3;
  toy.reinforce.model.global_batch_size = 4;
  const auto first = toy.reinforce_trainer();
  static_cast<void>(first->train_step());
  StateSnapshot state(true);
  static_cast<void>(first->save(state));
  state.write(toy.temp / "state");
  toy.reinforce.model.global_batch_size = 16;
  OnlineParts parts = toy.parts();
  parts.position = Position{.step = 1, .consumed_samples = 4, .num_updates = 4};
  ReinforceTrainer second(std::move(parts), toy.reinforce);
  second.load(StateFiles(toy.temp / "state"));
  EXPECT_EQ(second.plan().horizon, 6);
  EXPECT_EQ(second.policy().next_rate(), Schedule(sched, toy.reinforce.model.optim.lr, 6).rate(4));
}

// Where nothing has a spread, the step is full all the same, and nothing is learned.
TEST(PolicyGradient, DynamicSamplingEndsAfterItsBatches) {
  OnlineToy toy;
  toy.reinforce.trainer.loop.use_dynamic_sampling = true;
  toy.reinforce.trainer.loop.dynamic_sampling_max_batches = 3;
  toy.rewards.judge = [](const Rollout&) { return RowReward{.value = 1}; };
  const StepReport report = toy.reinforce_trainer()->train_step();
  EXPECT_EQ(number(report, "train_rollouts/rollout_size"), 16);
  EXPECT_EQ(number(report, "train_rollouts/dynamic_sampling_batches"), 3);
  EXPECT_EQ(number(report, "train_rollouts/consumed_samples"), 12);
  EXPECT_EQ(*report.updates[0].find("train_optim/grad_norm"), 0);
}

// A quarter of the 12 prompts have a spread, so one of the step's four has none. Without a baseline its rewards would be advantages.
TEST(PolicyGradient, WhatOnlyFillsADynamicStepTeachesNothing) {
  OnlineToy toy;
  toy.reinforce.trainer.loop.use_dynamic_sampling = true;
  toy.reinforce.trainer.loop.dynamic_sampling_max_batches = 3;
  toy.reinforce.trainer.loop.baseline = Baseline::none;
  toy.rewards.judge = [](const Rollout& rollout) {
    return RowReward{.value = rollout.prompt_id % 4 == 0 ? static_cast<double>(rollout.sample + 1) : 1};
  };
  const auto trainer = toy.reinforce_trainer();
  OnlineStep step = trainer->generate_rollouts();
  trainer->score(step);
  int64_t num_trained = 0;
  for (const RolloutRow& row : step.rows) {
    EXPECT_EQ(row.trains, row.rollout->prompt_id % 4 == 0);
    num_trained += row.trains ? 1 : 0;
  }
  EXPECT_EQ(num_trained, 12);
}

// What a step took is in its record, so that a run that died goes on with it.
TEST(PolicyGradient, RecordsOfDynamicStepsAreUsedAgain) {
  OnlineToy first, second;
  for (OnlineToy* toy : {&first, &second}) {
    toy->reinforce.trainer.loop.use_dynamic_sampling = true;
    toy->rewards.judge = [](const Rollout& rollout) {
      return RowReward{.value = rollout.prompt_id % 3 == 0 ? 1 : static_cast<double>(rollout.sample)};
    };
  }
  const testing::TempFolder folder;
  std::string wanted, found;
  {
    const auto trainer = first.reinforce_trainer(folder.path());
    for (int i = 0; i < 3; ++i) wanted += shown(trainer->train_step());
  }
  const auto trainer = second.reinforce_trainer(folder.path());
  for (int i = 0; i < 3; ++i) found += shown(trainer->train_step());
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(second.rewards.num_asked, 0) << "all of them are in the records";
}

TEST(PolicyGradient, OverTheBatchEveryTokenHasItsOwnAdvantage) {
  OnlineToy toy;
  toy.reinforce.trainer.loop.baseline = Baseline::batch_norm;
  toy.reinforce.trainer.loop.initial_policy_kl_penalty = 0.1;
  const auto trainer = toy.reinforce_trainer();
  static_cast<void>(trainer->train_step());
  OnlineStep step = trainer->generate_rollouts();
  trainer->score(step);
  std::vector<double> all;
  for (const RolloutRow& row : step.rows) {
    EXPECT_DOUBLE_EQ(row.reward_with_kl, row.reward.value - 0.1 * row.kl_sum) << "whatever kl_reduce is";
    EXPECT_EQ(std::ssize(row.advantages), row.rollout->response_length());
    all.insert(all.end(), row.advantages.begin(), row.advantages.end());
  }
  EXPECT_NEAR(moments_of(all).mean, 0, 1e-6);
  EXPECT_NEAR(moments_of(all).variance, 1, 1e-5);
}

}  // namespace
}  // namespace kedge
