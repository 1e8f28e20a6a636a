#pragma once
// The KV cache of running sequences, in blocks of kPagedBlock tokens. BlockPool tracks which sequence holds which block.
#include <cstdint>
#include <span>
#include <vector>

#include "kedge/core/tensor.h"
#include "kedge/engine/paged_attention.h"
#include "kedge/engine/scheduler.h"
#include "kedge/model/parameters.h"
#include "kedge/model/spec/model_config.h"

namespace kedge {

// Not thread-safe. One extra block is kept as a place that is never read.
class KeyValueMemory {
 public:
  KeyValueMemory(const ModelConfig& config, const StorageOptions& storage, int64_t num_blocks);

  [[nodiscard]] static int64_t bytes_for(const ModelConfig& config, at::ScalarType dtype, int64_t num_blocks);

  // Token by token: [blocks, kv_heads, kPagedBlock, head_dim]; but keys on the CPU, where one query multiplies many keys at once, channel
  // by channel: [blocks, kv_heads, head_dim, kPagedBlock].
  [[nodiscard]] const LayerMemory& layer(size_t index) const { return layers_[index]; }
  [[nodiscard]] BlockId spare_block() const { return spare_block_; }

  // One after another.
  void copy(std::span<const BlockCopy> copies) const;

 private:
  BlockId spare_block_;
  Tensor all_;  // [layers, 2, blocks, numbers of a block]
  std::vector<LayerMemory> layers_;
};

}  // namespace kedge
