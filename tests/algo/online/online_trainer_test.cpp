#include "kedge/algo/online/online_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/largest_allocation.h"
#include "tests/support/online_toy.h"
#include "tests/support/ppo_toy.h"

namespace kedge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::OnlineToy;

constexpr const char* kLonger = R"({"model_type": "llama", "vocab_size": 259, "hidden_size": 16, "intermediate_size": 24,
  "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 256})";

// A step after a rehearsal is the step without one, to the bit.
TEST(OnlineTrainer, ARehearsalChangesNothing) {
  for (const bool rehearses : {false, true}) {
    static StepReport first;
    OnlineToy toy;
    toy.reinforce.trainer.loop.initial_policy_kl_penalty = 0.1;
    const auto trainer = toy.reinforce_trainer();
    if (rehearses) trainer->rehearse();
    const StepReport report = trainer->train_step();
    if (!rehearses) {
      first = report;
      continue;
    }
    ASSERT_EQ(report.updates.size(), first.updates.size());
    for (size_t i = 0; i < report.updates.size(); ++i)
      for (const auto& [name, value] : first.updates[i]) EXPECT_EQ(report.updates[i].find(name), value) << name;
    EXPECT_EQ(*report.metrics.find("train_rollouts/rewards"), *first.metrics.find("train_rollouts/rewards"));
  }
}

// What all weights need is there after the first step. No plan has room for something as large that comes and goes.
TEST(OnlineTrainer, NothingInAStepIsAsLargeAsTheWeights) {
  const auto largest_in = [](OnlineTrainer& trainer) {
    static_cast<void>(trainer.train_step());
    const testing::LargestAllocation memory;
    static_cast<void>(trainer.train_step());
    return memory.bytes();
  };
  testing::PpoToy toy(testing::tiny_model(testing::kWideByteLlama));
  const size_t weights = toy.model->parameters().flat_master().nbytes();
  toy.reinforce.trainer.loop.initial_policy_kl_penalty = toy.ppo.trainer.loop.initial_policy_kl_penalty = 0.1;
  EXPECT_LT(largest_in(*toy.reinforce_trainer()), weights / 4);
  EXPECT_LT(largest_in(*toy.ppo_trainer()), weights / 4);
}

TEST(OnlineTrainer, APhaseThatFailedIsKnownByThePlansName) {
  OnlineToy toy;
  const auto trainer = toy.reinforce_trainer();
  EXPECT_EQ(trainer->failed_phase(), "");
  toy.rewards.judge = [](const Rollout&) -> RowReward { throw std::bad_alloc(); };
  EXPECT_THROW(static_cast<void>(trainer->train_step()), std::bad_alloc);
  EXPECT_EQ(trainer->failed_phase(), "generate") << "answers are judged as they end";
}

TEST(OnlineTrainer, AnAlarmSavesOrStopsAsTheSettingsSay) {
  for (const OnUnhealthy what : {OnUnhealthy::warn, OnUnhealthy::save, OnUnhealthy::stop}) {
    OnlineToy toy;
    toy.reinforce.trainer.loop.on_unhealthy = what;
    toy.reinforce.trainer.loop.health.window = 1;
    toy.reinforce.trainer.loop.health.max_kl = 1e-6;
    toy.reinforce.trainer.loop.max_steps = 5;
    toy.reinforce.trainer.loop.val_check_interval = 0;
    const auto trainer = toy.reinforce_trainer();
    EXPECT_FALSE(trainer->train_step().alarm) << "no KL yet";
    const StepReport report = trainer->train_step();
    ASSERT_TRUE(report.alarm);
    EXPECT_THAT(report.alarm->what, HasSubstr("KL"));
    EXPECT_EQ(report.alarm->save, what != OnUnhealthy::warn);
    EXPECT_EQ(report.alarm->stop, what == OnUnhealthy::stop);
  }
}

// Room for three blocks of 64 tokens: four responses begin with one each, and of more tokens they need two.
TEST(OnlineTrainer, SaysWhenResponsesWaitForMemory) {
  const auto said = [&](const std::string& memory) {
    OnlineToy toy(testing::tiny_model(kLonger));
    toy.reinforce.model.encoder_seq_length = toy.reinforce.model.data.seq_length = 128;
    toy.reinforce.model.rollouts.length_params.max_length = toy.reinforce.model.rollouts.length_params.min_length = 100;
    toy.reinforce.model.rollouts.tokens_per_pass = 128;
    toy.reinforce.model.engine.memory = memory;
    const auto trainer = toy.reinforce_trainer();
    ::testing::internal::CaptureStderr();
    const StepReport report = trainer->train_step();
    return std::pair(::testing::internal::GetCapturedStderr(), testing::shown(report));
  };
  const auto [crowded, short_of_memory] = said("32KiB");
  EXPECT_THAT(crowded, HasSubstr("step 0: the 24.0 KiB for keys and values were full, so responses waited and were computed again"));
  const auto [calm, roomy] = said("1MiB");
  EXPECT_THAT(calm, Not(HasSubstr("for keys and values")));
  EXPECT_EQ(short_of_memory, roomy);
}

// With its answer each of four prompts needs one block of the four; the longest there may be need two.
TEST(OnlineTrainer, ARehearsalThatWaitsForMemoryIsNoReasonToWarn) {
  OnlineToy toy(testing::tiny_model(kLonger));
  toy.reinforce.model.encoder_seq_length = toy.reinforce.model.data.seq_length = toy.reinforce.model.rollouts.tokens_per_pass = 72;
  toy.reinforce.trainer.loop.num_rollouts_per_prompt = 1;
  toy.reinforce.model.global_batch_size = 4;
  toy.reinforce.model.engine.memory = "40KiB";
  const auto trainer = toy.reinforce_trainer();
  ::testing::internal::CaptureStderr();
  trainer->rehearse();
  static_cast<void>(trainer->train_step());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("for keys and values")));
}

TEST(OnlineTrainer, ATokenizerWithoutAnEndIsRefused) {
  OnlineToy toy;
  const testing::TempFolder folder;
  folder.file("tokenizer.json", R"({"added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  toy.tokenizer = load_tokenizer(folder.path());
  toy.reinforce.model.rollouts.sampling_params.end_strings = {};
  EXPECT_THAT(testing::error_of([&] { return toy.reinforce_trainer(); }), HasSubstr("has no end-of-text token"));
}

}  // namespace
}  // namespace kedge
