#include "kedge/engine/kv_memory.h"

#include <gtest/gtest.h>

#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

TEST(KeyValueMemory, HoldsWhatItCounts) {
  const ModelConfig config = testing::tiny_config(testing::kTinyLlama);  // two layers, two kv heads of six channels
  const KeyValueMemory memory(config, {}, 5);
  EXPECT_EQ(memory.spare_block(), 5);
  EXPECT_EQ(KeyValueMemory::bytes_for(config, at::kFloat, 5), 2 * 2 * 5 * 2 * 6 * 64 * 4);
  EXPECT_EQ(memory.layer(1).keys.sizes().vec(), (std::vector<int64_t>{6, 2, 6, 64}));
  EXPECT_EQ(memory.layer(1).values.sizes().vec(), (std::vector<int64_t>{6, 2, 64, 6}));
}

TEST(KeyValueMemory, CopiesOneAfterAnotherInEveryLayer) {
  const KeyValueMemory memory(testing::tiny_config(testing::kTinyLlama), {}, 3);
  for (const size_t layer : {0, 1})
    for (const Tensor& part : {memory.layer(layer).keys, memory.layer(layer).values})
      for (int64_t block = 0; block < 3; ++block)
        part.select(0, block).fill_(static_cast<double>(block + 10 * static_cast<int64_t>(layer)));
  const std::vector<BlockCopy> copies = {{0, 1}, {1, 2}};
  memory.copy(copies);
  for (const size_t layer : {0, 1})
    for (const Tensor& part : {memory.layer(layer).keys, memory.layer(layer).values})
      EXPECT_TRUE(part.narrow(0, 0, 3).eq(10 * static_cast<double>(layer)).all().item<bool>());
}

}  // namespace
}  // namespace kedge
