#include "kedge/algo/online/rs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/online_toy.h"

namespace kedge {
namespace {

using ::testing::HasSubstr;
using testing::OnlineToy;
using testing::same_bits;
using testing::shown;

TEST(RejectionSampling, TheBestAnswersAreTrainedOnAndAllAreMeasured) {
  OnlineToy toy;
  toy.rs.model.rollouts.num_rollouts_per_prompt = 3;
  toy.rs.model.rollouts.top_n_rollouts = 2;
  toy.rewards.judge = [](const Rollout& rollout) { return RowReward{.value = rollout.sample == 1 ? -1.0 : 2.0}; };
  const auto trainer = toy.rs_trainer();
  OnlineStep step = trainer->generate_rollouts();
  RolloutRows& rows = step.rows;
  ASSERT_EQ(rows.size(), 12U);
  trainer->generate_rs_data(step);
  for (const RolloutRow& row : rows) {
    EXPECT_EQ(row.trains, row.rollout->sample != 1);
  }
  const std::vector<Metrics> updates = trainer->run_training(step);
  EXPECT_EQ(updates.size(), 2U) << "4 prompts x 2 answers, 4 an update";
  // The first update has looked at its answers: its loss is the mean of their cross-entropies.
  double sum = 0, count = 0;
  for (const RolloutRow& row : rows) {
    if (!row.entropy) continue;
    double logprobs = 0;
    for (const float logprob : row.logprobs) logprobs += static_cast<double>(logprob);
    sum -= logprobs / static_cast<double>(row.logprobs.size());
    ++count;
  }
  EXPECT_EQ(count, 4);
  EXPECT_NEAR(*updates[0].find("train_optim/loss"), sum / 4, 1e-6);
}

TEST(RejectionSampling, TheEntropyMayBeRewarded) {
  std::vector<double> losses;
  double entropy = 0;
  for (const double bonus : {0.0, 0.5}) {
    OnlineToy toy;
    toy.rs.model.rollouts.entropy_bonus = bonus;
    toy.rs.model.global_batch_size = 0;  // one update
    const StepReport report = toy.rs_trainer()->train_step();
    ASSERT_EQ(report.updates.size(), 1U);
    losses.push_back(*report.updates[0].find("train_optim/loss"));
    entropy = *report.metrics.find("train_rollouts/entropy");
  }
  EXPECT_NEAR(losses[1], losses[0] - 0.5 * entropy, 1e-5);
}

// Answers that were cut may be chosen, and equal prompts are chosen from one by one.
TEST(RejectionSampling, EverySlotGivesItsBestWhateverItsPromptAndItsEnd) {
  OnlineToy toy;
  std::string same;
  for (int i = 0; i < 12; ++i) same += "{\"text\": \"same\"}\n";
  toy.prompts = toy.open_prompts("same.jsonl", same);
  toy.rewards.judge = [](const Rollout& rollout) { return RowReward{.value = static_cast<double>(rollout.response_length())}; };
  const auto trainer = toy.rs_trainer();
  OnlineStep step = trainer->generate_rollouts();
  RolloutRows& rows = step.rows;
  trainer->generate_rs_data(step);
  std::vector<int64_t> slots;
  for (const RolloutRow& row : rows) {
    if (!row.trains) continue;
    slots.push_back(row.slot);
    EXPECT_FALSE(row.rollout->finished) << "the longest were cut";
  }
  EXPECT_THAT(slots, ::testing::ElementsAre(0, 1, 2, 3));
}

TEST(RejectionSampling, AStepSaysWhatItDid) {
  OnlineToy toy;
  const auto trainer = toy.rs_trainer();
  const StepReport report = trainer->train_step();
  EXPECT_EQ(*report.metrics.find("train_rollouts/consumed_samples"), 4) << "prompts, whatever is chosen of their answers";
  EXPECT_EQ(*report.metrics.find("train_rollouts/global_rewards"), *report.metrics.find("train_rollouts/rewards"));
  EXPECT_EQ(*report.metrics.find("train_rollouts/global_response_lengths_mean"), *report.metrics.find("train_rollouts/generation_length"));
  EXPECT_EQ(*report.metrics.find("train_rollouts/rollout_size"), 16);
  EXPECT_EQ(trainer->counters().at("rs_optimization_step"), 1);
  EXPECT_FALSE(trainer->policy().has_reference());
  EXPECT_TRUE(trainer->run_validation().metrics.find("val_rollouts/global_rewards"));
}

TEST(RejectionSampling, LearnsWhatIsRewarded) {
  OnlineToy toy;
  const auto trainer = toy.rs_trainer();
  const double before = *trainer->run_validation().metrics.find("val_rollouts/rewards");
  for (int i = 0; i < 40; ++i) static_cast<void>(trainer->train_step());
  EXPECT_GT(*trainer->run_validation().metrics.find("val_rollouts/rewards"), std::min(0.95, before + 0.2));
}

TEST(RejectionSampling, AnAnswerWithoutARewardIsNeverTrainedOn) {
  OnlineToy toy;
  toy.rewards.judge = [](const Rollout& rollout) {
    return rollout.prompt_id % 2 == 0 ? RowReward{.error = "no idea"} : RowReward{.value = static_cast<double>(rollout.sample)};
  };
  const auto trainer = toy.rs_trainer();
  OnlineStep step = trainer->generate_rollouts();
  RolloutRows& rows = step.rows;
  trainer->generate_rs_data(step);
  for (const RolloutRow& row : rows) EXPECT_EQ(row.trains, row.rollout->prompt_id % 2 == 1 && row.rollout->sample == 3);
  EXPECT_TRUE(std::isfinite(*trainer->run_training(step)[0].find("train_optim/loss")));
}

TEST(RejectionSampling, GoesOnBitForBit) {
  OnlineToy unbroken, broken, resumed;
  const auto straight = unbroken.rs_trainer();
  for (int i = 0; i < 3; ++i) static_cast<void>(straight->train_step());
  const auto first = broken.rs_trainer();
  static_cast<void>(first->train_step());
  const testing::TempFolder folder;
  StateSnapshot state;
  static_cast<void>(first->save(state));
  state.write(folder / "state");
  const auto second = resumed.rs_trainer();
  second->load(StateFiles(folder / "state"));
  for (int i = 1; i < 3; ++i) static_cast<void>(second->train_step());
  EXPECT_TRUE(same_bits(resumed.model->parameters().flat().detach(), unbroken.model->parameters().flat().detach()));
  EXPECT_EQ(shown(second->train_step()), shown(straight->train_step()));
  EXPECT_EQ(second->counters(), straight->counters());
}

// As the reference names them: its reader takes the first `step=` of a name for the step.
TEST(RsConfig, CheckpointsHaveTheReferencesNames) {
  EXPECT_EQ(RsConfig().exp_manager.checkpoint_callback_params.filename,
            "megatron_gpt-{step}-{consumed_samples}-{rs_optimization_step}-{epoch}-{val_global_rewards:.3f}");
}

TEST(RejectionSampling, MoreThanThereAreCannotBeChosen) {
  RsConfig config;
  config.model.rollouts.top_n_rollouts = 5;
  EXPECT_THAT(testing::error_of([&] { return settings_of(config); }), HasSubstr("model.rs.top_n_rollouts: the best 5 of 4 answers"));
}

}  // namespace
}  // namespace kedge
