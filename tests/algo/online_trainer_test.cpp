#include "kedge/algo/online_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/online_toy.h"

namespace kedge {
namespace {

using ::testing::HasSubstr;
using testing::OnlineToy;

TEST(OnlineTrainer, KlIsMeasuredWhereBothSidesAreKnown) {
  AnswerRows rows(2);
  rows[0].logprobs = {-0.5F, -1.5F};
  rows[0].reference = {-1.0F, -1.0F};
  rows[1].logprobs = {-1.0F};
  add_kl(rows, KlEstimator::abs);
  EXPECT_EQ(rows[0].kl_mean, 0.5);
  EXPECT_EQ(rows[0].kl_sum, 1.0);
  EXPECT_EQ(rows[1].kl_sum, 0);
}

TEST(OnlineTrainer, KeysAndValuesOfAllAnswersAreCounted) {
  OnlineSettings settings;
  settings.rollouts.num_rollout_samples = 10;
  settings.samples_per_prompt = 4;
  ModelConfig network;
  network.num_layers = 2;
  network.num_kv_heads = 1;
  network.head_dim = 8;
  const OnlineLengths lengths{.context = 100};
  const int64_t token = 2 * 2 * 8 * 4, sequence = token * 164;
  EXPECT_EQ(generation_bytes(settings, lengths, network, 4, 1), 40 * sequence);
  EXPECT_EQ(generation_bytes(settings, lengths, network, 4, 4), 12 * sequence) << "three prompts a rank at most";
  settings.loop.batch_iterator.use_flask = true;
  EXPECT_EQ(generation_bytes(settings, lengths, network, 4, 4), 40 * sequence) << "one rank may take all of a queue";
  settings.model.engine.scheduler.max_running = 8;
  EXPECT_EQ(generation_bytes(settings, lengths, network, 4, 1), 8 * sequence);
}

TEST(OnlineTrainer, AnAlarmSavesOrStopsAsTheSettingsSay) {
  for (const OnUnhealthy what : {OnUnhealthy::warn, OnUnhealthy::save, OnUnhealthy::stop}) {
    OnlineToy toy;
    toy.reinforce.trainer.reinforce.on_unhealthy = what;
    toy.reinforce.trainer.reinforce.health.window = 1;
    toy.reinforce.trainer.reinforce.health.max_kl = 1e-6;
    toy.reinforce.trainer.reinforce.max_steps = 5;
    toy.reinforce.trainer.reinforce.val_check_interval = 0;
    const auto trainer = toy.reinforce_trainer();
    EXPECT_FALSE(trainer->train_step().alarm) << "no KL yet";
    const StepReport report = trainer->train_step();
    ASSERT_TRUE(report.alarm);
    EXPECT_THAT(report.alarm->what, HasSubstr("KL"));
    EXPECT_EQ(report.alarm->save, what != OnUnhealthy::warn);
    EXPECT_EQ(report.alarm->stop, what == OnUnhealthy::stop);
  }
}

TEST(OnlineTrainer, ATokenizerWithoutAnEndIsRefused) {
  OnlineToy toy;
  const testing::TempFolder folder;
  folder.file("tokenizer.json", R"({"added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  toy.tokenizer = load_tokenizer(folder.path());
  toy.reinforce.model.reinforce.sampling_params.end_strings = {};
  EXPECT_THAT(testing::error_of([&] { return toy.reinforce_trainer(); }), HasSubstr("names no end of text"));
}

}  // namespace
}  // namespace kedge
