#include "kedge/engine/paged_attention.h"

#include <gtest/gtest.h>

#include "kedge/engine/kv_memory.h"
#include "kedge/model/kernels/rope_cache.h"

#include "tests/support/generation.h"

namespace kedge {
namespace {

// Fresh rows look at themselves, the others into the memory: the same tokens must get the same numbers either way.
TEST(PagedAttention, FreshRowsAndTheMemoryGiveTheSameBits) {
  for (const char* family : testing::kFamilies) {
    SCOPED_TRACE(family);
    const auto model = testing::long_model(family, {});
    const ModelConfig& config = model->config();
    const KeyValueMemory memory(config, {}, 4);
    RotaryTable rotary(config, at::kCPU);
    const LayerView layer = model->decoder().layer(1);
    const PackedBatch batch = testing::batch_of({70, 9});
    const Tensor qkv = testing::normals({79, config.qkv_size()}, 4);
    const std::vector<std::vector<BlockId>> blocks = {{2, 0}, {3}};
    PagedTokens tokens;
    if (!config.learned_positions) tokens.rotation = rotary.rotation(batch);
    for (int64_t i = 0; i < 79; ++i) tokens.queries.push_back({blocks[i < 70 ? 0 : 1].data(), i < 70 ? i : i - 70});
    tokens.fresh = batch;
    const Tensor fresh = paged_attention(qkv.clone(), layer, tokens, memory.layer(1));
    tokens.num_paged = 79;
    tokens.fresh = {};
    const Tensor paged = paged_attention(qkv.clone(), layer, tokens, memory.layer(1));
    EXPECT_TRUE(fresh.equal(paged));
  }
}

}  // namespace
}  // namespace kedge
