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

TEST(EngineMemory, FewQueriesOrALongSequenceDivideTheirKeys) {
  EXPECT_EQ(key_splits(1024, 8, 500, true), 1);
  EXPECT_EQ(key_splits(4, 8, 600, true), 2) << "there are too few, but less than 256 keys are not worth a part";
  EXPECT_EQ(key_splits(4, 8, 4000, true), 16);
  EXPECT_EQ(key_splits(1024, 8, 5000, true), 4) << "one of them may be long";
  EXPECT_EQ(key_splits(1024, 8, 100'000, true), 32);
  EXPECT_EQ(key_splits(8192, 8, 24'576, false), 1) << "a piece of a long prompt";
  EXPECT_EQ(key_splits(16, 8, 24'576, false), 8) << "the few tokens that end one";
}

// 1,024 sequences of which one may have 32,768 tokens, 32 heads of 128: 32 parts of 128 sums and a logarithm each, for what runs and for
// what is recorded.
TEST(EngineMemory, DividedKeysAreCounted) {
  ModelConfig model = testing::tiny_config(testing::kTinyLlama);
  model.num_heads = 32, model.num_kv_heads = 8, model.head_dim = 128;
  EngineInput input{.model = model, .dtype = at::kBFloat16, .is_cuda = true, .answers = 1024, .usual = 1, .longest = 1024};
  const int64_t undivided = engine_bytes(input).workspace;
  input.longest = 32'768;
  EXPECT_EQ(engine_bytes(input).workspace - undivided, 2 * int64_t{1024} * 32 * 32 * 129 * 4);
}

}  // namespace
}  // namespace kedge
