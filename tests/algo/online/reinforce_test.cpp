#include "kedge/algo/online/reinforce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/algo/config_sections.h"
#include "kedge/core/autograd.h"

#include "tests/support/expect_error.h"
#include "tests/support/online_toy.h"

namespace kedge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::OnlineToy;
using testing::same_bits;
using testing::shown;

double number(const StepReport& report, const std::string& name) {
  const auto found = report.metrics.find(name);
  EXPECT_TRUE(found) << name;
  return found.value_or(NAN);
}
double mean_loss(const StepReport& report) {
  double sum = 0;
  for (const Metrics& update : report.updates) sum += *update.find("train_optim/loss");
  return sum / static_cast<double>(report.updates.size());
}

TEST(Reinforce, AStepSaysWhatItDid) {
  OnlineToy toy;
  const auto trainer = toy.reinforce_trainer();
  const StepReport report = trainer->train_step();
  EXPECT_EQ(report.updates.size(), 2U) << "4 prompts x 4 answers, 8 an update";
  EXPECT_EQ(number(report, "train_rollouts/rollout_size"), 16);
  EXPECT_EQ(number(report, "train_rollouts/init_policy_kl"), 0) << "the policy is the reference still";
  EXPECT_EQ(number(report, "train_rollouts/rewards"), number(report, "train_rollouts/rewards_with_kl"));
  EXPECT_EQ(number(report, "train_rollouts/consumed_samples"), 4) << "prompts";
  EXPECT_EQ(number(report, "train_rollouts/consumed_rollouts"), 16);
  EXPECT_EQ(number(report, "train_rollouts/epoch"), 1);
  EXPECT_NEAR(number(report, "train_rollouts/baseline_mean"), number(report, "train_rollouts/rewards"), 1e-9) << "each is in three means";
  EXPECT_EQ(number(report, "train_rollouts/logprob_gap_max"), 0);
  EXPECT_NEAR(number(report, "train_rollouts/entropy"), std::log(259.0), 2.0);
  EXPECT_EQ(*report.updates[1].find("train_optim/optim_step"), 1);
  ASSERT_EQ(report.samples.size(), 1U);
  EXPECT_EQ(report.samples[0].name, "train_rollouts");
  EXPECT_EQ(trainer->counters().at("reinforce_optimization_step"), 2);
  const StepReport next = trainer->train_step();
  EXPECT_GT(number(next, "train_rollouts/init_policy_kl"), 0);
}

// On a CPU the engine's log-probabilities are training's, so computing them anew changes nothing.
TEST(Reinforce, TheEnginesLogprobsAreAsGoodAsTrainings) {
  for (const bool adapted : {false, true}) {
    std::vector<std::string> seen;
    for (const LogprobSource source : {LogprobSource::automatic, LogprobSource::trainer}) {
      OnlineToy toy(testing::byte_model({}, {.trainable = !adapted}));
      if (adapted) {
        toy.model->add_adapters({}, true);
        toy.model->adapters()->initialise(1);
      }
      toy.reinforce.model.rollouts.logprobs = source;
      toy.reinforce.model.global_batch_size = 16;  // one update: the whole step is looked at
      toy.reinforce.model.rollouts.tokens_per_pass = 96;
      toy.reinforce.trainer.loop.ratio = RatioKind::clip;
      const auto trainer = toy.reinforce_trainer();
      std::string text;
      for (int i = 0; i < 3; ++i) text += shown(trainer->train_step());
      seen.push_back(text);
      EXPECT_THAT(text, HasSubstr("logprob_gap_max=0.0 "));
    }
    EXPECT_EQ(seen[0], seen[1]);
  }
}

TEST(Reinforce, LearnsWhatIsRewarded) {
  OnlineToy toy;
  toy.reinforce.trainer.loop.initial_policy_kl_penalty = 0.001;
  const auto trainer = toy.reinforce_trainer();
  const double before = number(trainer->run_validation(), "val_rollouts/rewards");
  for (int i = 0; i < 40; ++i) static_cast<void>(trainer->train_step());
  EXPECT_GT(number(trainer->run_validation(), "val_rollouts/rewards"), std::min(0.95, before + 0.3));
}

// The reward is raised by the KL that a row has, times beta; spec 21.2: means over tokens.
TEST(Reinforce, ThePenaltyIsTheMeanOrTheSumOverTokens) {
  OnlineToy toy;
  auto& config = toy.reinforce.trainer.loop;
  config.initial_policy_kl_penalty = 0.05;
  const auto data = [&] {
    OnlineStep step{.rows = RolloutRows(2)};
    RolloutRows& rows = step.rows;
    rows[0].rollout = std::make_shared<const Rollout>(Rollout{.finished = true});
    rows[1].rollout = rows[0].rollout;
    rows[1].slot = 1;
    rows[0].reward.value = 2;
    rows[1].reward.value = 1;
    rows[0].logprobs = {-0.50F, -1.10F, -0.30F, -0.90F};
    rows[0].reference = {-0.80F, -0.90F, -0.45F, -0.60F};
    rows[1].logprobs = {-0.60F, -1.40F, -0.20F};
    rows[1].reference = {-0.50F, -1.10F, -0.65F};
    toy.reinforce_trainer()->generate_reinforce_data(step);
    return rows;
  };
  RolloutRows rows = data();
  EXPECT_NEAR(rows[0].reward_with_kl, 1.988125, 1e-7);
  EXPECT_NEAR(rows[1].reward_with_kl, 0.985833333, 1e-7);
  EXPECT_EQ(rows[0].advantage, 0) << "one answer to a prompt is its own baseline";
  config.use_absolute_kl = false;
  rows = data();
  EXPECT_NEAR(rows[0].kl_mean, -0.0125, 1e-7);
  EXPECT_NEAR(rows[1].kl_mean, 0.016666667, 1e-7);
  config.kl_reduce = KlReduce::sum;
  config.kl_estimator = KlEstimator::abs;
  rows = data();
  EXPECT_NEAR(rows[0].reward_with_kl, 2 - 0.05 * 0.95, 1e-7);
}

TEST(Reinforce, WhoDidNotEndTeachesNothingUnlessItIsKept) {
  OnlineToy toy;
  toy.reinforce.trainer.loop.unfinished = Unfinished::drop;
  toy.rewards.judge = [](const Rollout& rollout) { return RowReward{.value = static_cast<double>(rollout.sample)}; };
  const Tensor before = toy.model->parameters().flat().detach().clone();
  toy.reinforce.model.optim.weight_decay = 0;
  const auto trainer = toy.reinforce_trainer();
  OnlineStep step = trainer->generate_rollouts();
  RolloutRows& rows = step.rows;
  for (RolloutRow& row : rows) {
    auto unended = std::make_shared<Rollout>(*row.rollout);
    unended->finished = false;
    row.rollout = unended;
  }
  trainer->generate_reinforce_data(step);
  for (const RolloutRow& row : rows) EXPECT_FALSE(row.trains);
  for (const Metrics& update : trainer->run_training(step)) {
    EXPECT_EQ(*update.find("train_optim/loss"), 0);
    EXPECT_EQ(*update.find("train_optim/grad_norm"), 0);
  }
  EXPECT_TRUE(same_bits(toy.model->parameters().flat().detach(), before));
}

TEST(Reinforce, ARowWithoutARewardIsLeftOut) {
  OnlineToy toy;
  toy.rewards.judge = [](const Rollout& rollout) {
    return rollout.sample == 0 ? RowReward{.value = 1e9, .error = "no idea"} : RowReward{.value = static_cast<double>(rollout.sample)};
  };
  const auto trainer = toy.reinforce_trainer();
  OnlineStep step = trainer->generate_rollouts();
  RolloutRows& rows = step.rows;
  trainer->generate_reinforce_data(step);
  for (const RolloutRow& row : rows) {
    EXPECT_EQ(row.trains, row.rollout->sample != 0);
    const double others = (6.0 - static_cast<double>(row.rollout->sample)) / 2;
    EXPECT_NEAR(row.trains ? row.advantage : 0, row.trains ? static_cast<double>(row.rollout->sample) - others : 0, 1e-9);
  }
}

TEST(Reinforce, ARunWhoseEveryRewardFailsEnds) {
  OnlineToy toy;
  toy.rewards.judge = [](const Rollout&) { return RowReward{.error = "judge.py: no module named torch"}; };
  EXPECT_EQ(testing::error_of<Error>([&] { return toy.reinforce_trainer()->train_step(); }),
            "step 0: every reward of the step failed (16 of 16), so nothing can be learned; the first: judge.py: no module named torch\n"
            "The run ends here; trainer.reinforce.health.invariants=warn would continue");
  toy.reinforce.trainer.loop.health.invariants = OnBroken::warn;
  const Tensor before = toy.model->parameters().flat().detach().clone();
  static_cast<void>(toy.reinforce_trainer()->train_step());
  EXPECT_TRUE(same_bits(toy.model->parameters().flat().detach(), before));
}

TEST(Reinforce, ARunWhoseWeightsAreNoNumbersEnds) {
  OnlineToy toy;
  const auto trainer = toy.reinforce_trainer();
  static_cast<void>(trainer->train_step());
  toy.rewards.judge = [&](const Rollout& rollout) {
    toy.model->parameters().flat_master().detach()[0] = std::numeric_limits<float>::quiet_NaN();
    return testing::plain_share(rollout);
  };
  EXPECT_THAT(testing::error_of<Error>([&] { return trainer->train_step(); }),
              ::testing::HasSubstr("weights are no longer finite numbers"));
}

// A reward that failed may be anything, also no number: nothing of it gets into the gradient or the metrics.
TEST(Reinforce, AFailedRewardSpoilsNothing) {
  OnlineToy toy;
  toy.rewards.judge = [](const Rollout& rollout) {
    const bool fails = rollout.sample == 0 || rollout.prompt_id % 2 == 0;
    return fails ? RowReward{.value = NAN, .error = "no idea"} : testing::plain_share(rollout);
  };
  const StepReport report = toy.reinforce_trainer()->train_step();
  for (const Metrics& update : report.updates) {
    EXPECT_TRUE(std::isfinite(*update.find("train_optim/loss")));
    EXPECT_GT(*update.find("train_optim/grad_norm"), 0);
    EXPECT_FALSE(update.find("train_optim/skipped_updates"));
  }
  for (const auto& [name, value] : report.metrics) EXPECT_TRUE(std::isfinite(value)) << name;
}

// Four slots with one and the same prompt are four groups.
TEST(Reinforce, EqualPromptsAreGroupsOfTheirOwn) {
  OnlineToy toy;
  std::string same;
  for (int i = 0; i < 12; ++i) same += "{\"text\": \"same\"}\n";
  toy.prompts = toy.open_prompts("same.jsonl", same);
  toy.rewards.judge = [](const Rollout& rollout) {
    return RowReward{.value = static_cast<double>(100 * rollout.prompt_id + rollout.sample * rollout.sample)};
  };
  const auto trainer = toy.reinforce_trainer();
  OnlineStep step = trainer->generate_rollouts();
  RolloutRows& rows = step.rows;
  trainer->generate_reinforce_data(step);
  for (const RolloutRow& row : rows) {
    const auto sample = static_cast<double>(row.rollout->sample);
    EXPECT_NEAR(row.baseline, static_cast<double>(100 * row.rollout->prompt_id) + (0 + 1 + 4 + 9 - sample * sample) / 3, 1e-9);
  }
}

// They are those of the policy that is trained, whatever was done to its logits before a token was drawn.
TEST(Reinforce, LogprobsKnowNoTemperature) {
  OnlineToy toy;
  toy.reinforce.model.rollouts.sampling_params.temperature = 0.5;
  toy.reinforce.model.rollouts.sampling_params.top_p = 0.9;
  const StepReport report = toy.reinforce_trainer()->train_step();
  EXPECT_EQ(number(report, "train_rollouts/logprob_gap_max"), 0);
  EXPECT_LT(number(report, "train_rollouts/init_policy_kl"), 1e-5);  // the reference's are of the logits as they are
}

TEST(Reinforce, WithoutAPenaltyThereIsNoReference) {
  OnlineToy toy;
  toy.reinforce.trainer.loop.initial_policy_kl_penalty = 0;
  const auto trainer = toy.reinforce_trainer();
  EXPECT_FALSE(trainer->policy().has_reference());
  EXPECT_FALSE(trainer->train_step().metrics.find("train_rollouts/init_policy_kl")) << "what is not computed is not reported as 0";
  EXPECT_FALSE(trainer->run_validation().metrics.find("val_rollouts/init_policy_kl"));
}

TEST(Reinforce, OneAnswerToAPromptTeachesNothing) {
  OnlineToy toy;
  toy.reinforce.trainer.loop.num_rollouts_per_prompt = 1;
  toy.reinforce.model.global_batch_size = 4;
  const auto warning = [&] {
    ::testing::internal::CaptureStderr();
    static_cast<void>(toy.reinforce_trainer());
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warning(), HasSubstr("num_rollouts_per_prompt: a single answer is its own baseline"));
  EXPECT_EQ(mean_loss(toy.reinforce_trainer()->train_step()), 0);
  toy.reinforce.trainer.loop.baseline = Baseline::batch_mean;
  EXPECT_THAT(warning(), Not(HasSubstr("num_rollouts_per_prompt")));
  EXPECT_NE(mean_loss(toy.reinforce_trainer()->train_step()), 0);
}

TEST(Reinforce, EveryBaselineRatioAndNormLearns) {
  for (const auto& baseline : enum_names(Baseline{}))
    for (const RatioKind ratio : {RatioKind::none, RatioKind::clip, RatioKind::cispo}) {
      OnlineToy toy;
      auto& config = toy.reinforce.trainer.loop;
      config.baseline = baseline.value;
      config.ratio = ratio;
      config.epochs = 2;
      config.loss_norm = ratio == RatioKind::clip ? LossNorm::tokens : LossNorm::sequences;
      const auto trainer = toy.reinforce_trainer();
      const StepReport report = trainer->train_step();
      EXPECT_EQ(report.updates.size(), 4U);
      for (const Metrics& update : report.updates) {
        EXPECT_TRUE(std::isfinite(*update.find("train_optim/loss")));
        EXPECT_GT(*update.find("train_optim/grad_norm"), 0);
      }
    }
}

TEST(Reinforce, AdaptersLearnWhileTheBaseStaysTheReference) {
  OnlineToy toy(testing::byte_model({}, {.trainable = false}));
  const Tensor base = toy.model->parameters().flat().detach().clone();
  toy.model->add_adapters({}, true);
  toy.model->adapters()->initialise(1);
  const auto trainer = toy.reinforce_trainer();
  EXPECT_EQ(number(trainer->train_step(), "train_rollouts/init_policy_kl"), 0);
  EXPECT_GT(number(trainer->train_step(), "train_rollouts/init_policy_kl"), 0);
  EXPECT_TRUE(same_bits(toy.model->parameters().flat().detach(), base));
}

// An update then sees other log-probabilities than the policy has; those that are kept and measured are the policy's.
TEST(Reinforce, DropoutOfAdaptersIsInNoLogprobs) {
  for (const RatioKind ratio : {RatioKind::none, RatioKind::clip}) {
    OnlineToy toy(testing::byte_model({}, {.trainable = false}));
    toy.reinforce.trainer.loop.ratio = ratio;
    toy.reinforce.trainer.loop.initial_policy_kl_penalty = 0;
    LoraConfig adapters;
    adapters.adapter_dropout = 0.5;
    toy.model->add_adapters(adapters, true);
    toy.model->adapters()->initialise(1);
    const auto trainer = toy.reinforce_trainer();
    static_cast<void>(trainer->train_step());
    const StepReport report = trainer->train_step();  // now the adapters do something
    EXPECT_EQ(number(report, "train_rollouts/logprob_gap_max"), 0);
    EXPECT_GT(number(report, "train_rollouts/entropy"), 0);
  }
}

// Stopped after two steps and taken up by another trainer, everything goes on as if nothing had happened, also a rate that still rises.
TEST(Reinforce, GoesOnBitForBit) {
  OnlineToy unbroken, broken, resumed;
  for (OnlineToy* toy : {&unbroken, &broken, &resumed})
    toy->reinforce.model.optim.sched = {
        .warmup_steps = 20, .constant_steps = 0, .min_lr = 0.001, .horizon = ScheduleHorizon::optimizer_steps};
  const auto straight = unbroken.reinforce_trainer();
  for (int i = 0; i < 4; ++i) static_cast<void>(straight->train_step());
  const auto first = broken.reinforce_trainer();
  for (int i = 0; i < 2; ++i) static_cast<void>(first->train_step());
  const testing::TempFolder folder;
  {
    StateSnapshot state;
    static_cast<void>(first->save(state));
    static_cast<void>(first->train_step());  // what was saved does not change any more
    state.write(folder / "state");
  }
  const auto second = resumed.reinforce_trainer();
  second->load(StateFiles(folder / "state"));
  for (int i = 2; i < 4; ++i) static_cast<void>(second->train_step());
  EXPECT_TRUE(same_bits(resumed.model->parameters().flat().detach(), unbroken.model->parameters().flat().detach()));
  const StepReport last = second->train_step();
  EXPECT_EQ(shown(last), shown(straight->train_step()));
  EXPECT_NEAR(*last.updates[1].find("train_optim/lr"), 0.01 * 10 / 21, 1e-12) << "the tenth update";
  EXPECT_EQ(shown(second->run_validation()), shown(straight->run_validation()));
  EXPECT_EQ(second->counters(), straight->counters());
}

// A run that died after its steps were recorded takes the answers from there, and comes to the same weights.
TEST(Reinforce, RecordedAnswersAreUsedAgain) {
  OnlineToy first, second, changed;
  const testing::TempFolder folder;
  std::string before;
  {
    const auto trainer = first.reinforce_trainer(folder.path());
    static_cast<void>(trainer->train_step());
    before = shown(trainer->train_step());
  }
  {
    const auto trainer = second.reinforce_trainer(folder.path());
    static_cast<void>(trainer->train_step());
    EXPECT_EQ(shown(trainer->train_step()), before);
    EXPECT_EQ(second.rewards.num_asked, 0);
    static_cast<void>(trainer->train_step());
  }
  EXPECT_EQ(second.rewards.num_asked, 16) << "the third step was not recorded";
  EXPECT_TRUE(std::filesystem::exists(folder / "rollouts/step-2.jsonl"));

  changed.reinforce.model.seed = 99;
  static_cast<void>(changed.reinforce_trainer(folder.path())->train_step());
  EXPECT_EQ(changed.rewards.num_asked, 16) << "other answers would have been drawn";
}

TEST(Reinforce, RecordedAnswersToOtherPromptsAreNotUsed) {
  OnlineToy first, second;
  const testing::TempFolder folder;
  static_cast<void>(first.reinforce_trainer(folder.path())->train_step());
  std::string rows;
  for (int i = 0; i < 12; ++i) rows += R"({"text": "other )" + std::to_string(i) + "\"}\n";  // as many as before
  second.prompts = second.open_prompts("other.jsonl", rows);
  static_cast<void>(second.reinforce_trainer(folder.path())->train_step());
  EXPECT_EQ(second.rewards.num_asked, 16);
}

TEST(Reinforce, AnswersThatWereNotJudgedAreAskedAboutAgain) {
  OnlineToy first, second;
  const testing::TempFolder folder;
  first.rewards.judge = [](const Rollout& rollout) {
    return rollout.sample == 0 ? RowReward{.error = "away"} : testing::plain_share(rollout);
  };
  static_cast<void>(first.reinforce_trainer(folder.path())->train_step());
  static_cast<void>(second.reinforce_trainer(folder.path())->train_step());
  EXPECT_EQ(second.rewards.num_asked, 16);
}

TEST(Reinforce, ValidationHasItsOwnSamplingAndDrawsAlikeEveryTime) {
  OnlineToy toy;
  toy.reinforce.model.rollouts.val_sampling_params.emplace().use_greedy = true;
  toy.reinforce.model.rollouts.val_length_params.emplace().max_length = 3;
  const auto trainer = toy.reinforce_trainer();
  const StepReport first = trainer->run_validation();
  EXPECT_EQ(shown(trainer->run_validation()), shown(first));
  EXPECT_EQ(number(first, "val_rollouts/rollout_size"), 4);
  EXPECT_LE(number(first, "val_rollouts/generation_length"), 3);
  EXPECT_EQ(number(first, "val_rollouts/init_policy_kl"), 0);
  EXPECT_FALSE(first.metrics.find("val_rollouts/rewards_with_kl"));
  EXPECT_EQ(first.samples[0].name, "val_rollouts");
  EXPECT_EQ(trainer->counters().at("consumed_samples"), 0) << "no prompts of training were taken";
  toy.reinforce.model.rollouts.num_val_samples = 100;
  EXPECT_EQ(number(toy.reinforce_trainer()->run_validation(), "val_rollouts/rollout_size"), 5) << "all that there are";
}

TEST(Reinforce, FitRunsAllStepsWithValidation) {
  OnlineToy toy;
  toy.reinforce.trainer.loop.max_steps = 3;
  toy.reinforce.trainer.loop.val_check_interval = 2;
  const auto trainer = toy.reinforce_trainer();
  MetricsLog log(true);
  const LoopResult result = trainer->fit(log);
  EXPECT_EQ(result.step, 3);
  EXPECT_EQ(result.reason, "complete");
  EXPECT_TRUE(result.last.find("val_rollouts/rewards"));
}

TEST(Reinforce, FitResumesFromTheNewestCheckpoint) {
  const auto fit = [](OnlineToy& toy, int64_t max_steps, const FitOptions& options) {
    const auto trainer = toy.reinforce_trainer();
    trainer->set_max_steps(max_steps);
    MetricsLog log(true);
    return trainer->fit(log, options);
  };
  OnlineToy undisturbed, stopped, resumed;
  for (OnlineToy* toy : {&undisturbed, &stopped, &resumed}) toy->reinforce.trainer.loop.val_check_interval = 1;
  for (OnlineToy* toy : {&undisturbed, &stopped, &resumed}) toy->reinforce.trainer.loop.save_interval = 1;
  EXPECT_EQ(fit(undisturbed, 4, {}).step, 4);
  CheckpointStore store(stopped.temp / "checkpoints", {});
  BackgroundSaver saver(store);
  EXPECT_EQ(fit(stopped, 2, {.saver = &saver, .resume_from = &store}).step, 2) << "without a checkpoint it begins";
  EXPECT_EQ(fit(resumed, 4, {.resume_from = &store}).step, 4);
  EXPECT_LT(resumed.rewards.num_asked, undisturbed.rewards.num_asked) << "two of its steps were done before";
  EXPECT_TRUE(same_bits(resumed.model->parameters().flat().detach(), undisturbed.model->parameters().flat().detach()));
}

TEST(Reinforce, FitEndsAtItsTimeLimit) {
  OnlineToy toy;
  MetricsLog log(true);
  const LoopResult result = toy.reinforce_trainer()->fit(log, {.time_limit = std::chrono::seconds(0)});
  EXPECT_EQ(result.step, 1);
  EXPECT_EQ(result.reason, "time limit");
}

TEST(Reinforce, LoadStateDictBringsTheCountersBack) {
  OnlineToy toy;
  const auto trainer = toy.reinforce_trainer();
  static_cast<void>(trainer->train_step());
  StateSnapshot state(true);
  static_cast<void>(trainer->save(state));
  state.write(toy.temp / "state");
  OnlineToy other;
  const auto again = other.reinforce_trainer();
  again->load_state_dict(StateFiles(toy.temp / "state"));
  EXPECT_EQ(again->state_dict(), trainer->state_dict());
}

TEST(Reinforce, NoStepsAreNothingToDo) {
  OnlineToy toy;
  toy.reinforce.trainer.loop.max_steps = 0;
  MetricsLog log(true);
  EXPECT_EQ(toy.reinforce_trainer()->fit(log).step, 0);
  EXPECT_EQ(toy.rewards.num_asked, 0);
}

// As the reference names them: its reader takes the first `step=` of a name for the step.
TEST(ReinforceConfig, CheckpointsHaveTheReferencesNames) {
  EXPECT_EQ(ReinforceConfig().exp_manager.checkpoint_callback_params.filename,
            "megatron_gpt-{step}-{consumed_samples}-{reinforce_optimization_step}-{epoch}-{val_rewards:.3f}");
}

TEST(ReinforceConfig, TheReferencesNamesAreUnderstood) {
  ReinforceConfig config;
  const auto load = [&](const std::vector<std::string>& overrides) {
    std::vector<std::string> all = {"pretrained_checkpoint.restore_from_path=m", "model.data.data_prefix=[x]"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return load_section(describe(config), ConfigText{"none", ""}, all);
  };
  static_cast<void>(load({"remote_rm.host=there", "remote_rm.port=77", "trainer.reinforce.discount_factor=1.0",
                          "model.reinforce.offload_adam_states=True", "trainer.reinforce.use_absolute_kl=False",
                          "trainer.reinforce.val_check_interval=-1", "trainer.reinforce.max_steps=-2"}));
  EXPECT_EQ(config.remote_rm->reward_model.ip, "there");
  EXPECT_EQ(config.remote_rm->reward_model.port, 77);
  EXPECT_TRUE(config.model.optim.offload_adam_states);
  EXPECT_EQ(config.trainer.loop.save_interval, -1) << "without validation nothing is saved unless it is said";
  EXPECT_EQ(settings_of(config).kl_estimator, KlEstimator::k1);
  EXPECT_THAT(testing::error_of([&] { return load({"trainer.reinforce.discount_factor=0.9"}); }), HasSubstr("discount_factor"));
}

}  // namespace
}  // namespace kedge
