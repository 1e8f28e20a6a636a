#include "kedge/algo/online/generation.h"

#include <gtest/gtest.h>

#include "tests/support/online_toy.h"

namespace kedge {
namespace {

TEST(Generation, TheEngineIsAskedForAllAnswersOfARank) {
  OnlineSettings settings;
  settings.rollouts.num_rollout_samples = 10;
  settings.samples_per_prompt = 4;
  const ModelConfig network;
  const OnlineLengths lengths{.context = 100};
  const auto input = [&](int num_ranks) { return generation_input(settings, lengths, network, {.dtype = at::kBFloat16}, num_ranks); };
  EXPECT_EQ(input(1).answers, 40);
  EXPECT_EQ(input(1).usual, 100);
  EXPECT_EQ(input(1).dtype, at::kBFloat16);
  EXPECT_EQ(input(4).answers, 12) << "three prompts a rank at most";
  settings.loop.batch_iterator.use_flask = true;
  EXPECT_EQ(input(4).answers, 40) << "one rank may take all of a queue";
}

// `auto` is what the engine is given in training.
TEST(Generation, TheEngineIsTrustedOnACpuUnlessTheTrainerIsAskedFor) {
  EXPECT_TRUE(trusts_engine(LogprobSource::automatic, at::kCPU, false));
  EXPECT_TRUE(trusts_engine(LogprobSource::engine, at::kCUDA, false));
  EXPECT_FALSE(trusts_engine(LogprobSource::automatic, at::kCUDA, false));
  EXPECT_FALSE(trusts_engine(LogprobSource::trainer, at::kCPU, false));
  EXPECT_FALSE(trusts_engine(LogprobSource::automatic, at::kCPU, true)) << "it computes in another layout";
}

}  // namespace
}  // namespace kedge
