#include "kedge/engine/engine_memory.h"

#include <gtest/gtest.h>

#include "kedge/engine/kv_memory.h"

#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

TEST(EngineMemory, KeysAndValuesOfAllAnswersThatRunTogether) {
  const ModelConfig model = testing::tiny_config(testing::kTinyLlama);
  EngineInput input{.model = model, .answers = 10, .usual = 65, .longest = 200};
  const int64_t block = KeyValueMemory::bytes_for(model, at::kFloat, 1);
  EXPECT_EQ(engine_bytes(input).cache, (10 * 2 + 1) * block) << "65 tokens are two blocks";
  EXPECT_EQ(engine_bytes(input).one, (4 + 1) * block);
  input.scheduler.max_running = 3;
  EXPECT_EQ(engine_bytes(input).cache, (3 * 2 + 1) * block);
  input.dtype = at::kBFloat16;
  EXPECT_EQ(engine_bytes(input).cache, (3 * 2 + 1) * block / 2);
}

TEST(EngineMemory, MoreRunTogetherOnAGpuUnlessTheirNumberIsGiven) {
  const ModelConfig model = testing::tiny_config(testing::kTinyLlama);
  EngineInput input{.model = model, .answers = 5000, .usual = 64, .longest = 64};
  const int64_t block = KeyValueMemory::bytes_for(model, at::kFloat, 1);
  EXPECT_EQ(engine_bytes(input).cache, (256 + 1) * block);
  input.is_cuda = true;
  EXPECT_EQ(engine_bytes(input).cache, (1024 + 1) * block);
  input.scheduler.max_running = 300;
  EXPECT_EQ(engine_bytes(input).cache, (300 + 1) * block);
}

// 24 wide, qkv 48, attention's output 24, gate and up 72 with 36 behind them, 31 tokens: a step holds 2 x 24 numbers a token and the larger
// of 2 x 48 + 24 and 72 + 36.
TEST(EngineMemory, AStepIsAsLargeAsThePromptsOrTheAnswersMakeIt) {
  const ModelConfig model = testing::tiny_config(testing::kTinyLlama);
  EngineInput input{.model = model, .answers = 10, .usual = 50, .longest = 50};
  EXPECT_EQ(engine_bytes(input).workspace, 500 * (48 + 120) * 4 + 10 * 31 * 4);
  input.scheduler.max_batch_tokens = 100;
  EXPECT_EQ(engine_bytes(input).workspace, 100 * (48 + 120) * 4 + 10 * 31 * 4);
  input.is_cuda = true;
  EXPECT_EQ(engine_bytes(input).workspace, 100 * (48 + 120) * 4 + 10 * 31 * 4 + 10 * (48 + 120) * 4 + 10 * 31 * 4) << "recorded steps";
  input.use_graphs = false;
  EXPECT_EQ(engine_bytes(input).workspace, 100 * (48 + 120) * 4 + 10 * 31 * 4);
}

}  // namespace
}  // namespace kedge
