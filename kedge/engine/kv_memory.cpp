#include "kedge/engine/kv_memory.h"

namespace kedge {

KeyValueMemory::KeyValueMemory(const ModelConfig& config, const StorageOptions& storage, int64_t num_blocks)
    : spare_block_(static_cast<BlockId>(num_blocks)),
      // Not filled: on the CPU the system gives pages as they are first written.
      all_(at::empty({config.num_layers, 2, num_blocks + 1, config.kv_size() * kPagedBlock},
                     at::TensorOptions(storage.device).dtype(storage.dtype))) {
  const std::vector<int64_t> by_channel = {num_blocks + 1, config.num_kv_heads, config.head_dim, kPagedBlock};
  const std::vector<int64_t> by_token = {num_blocks + 1, config.num_kv_heads, kPagedBlock, config.head_dim};
  const bool cuda = storage.device.is_cuda();
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const Tensor layer = all_.select(0, i);
    layers_.push_back({layer.select(0, 0).view(cuda ? by_token : by_channel), layer.select(0, 1).view(by_token)});
  }
}

int64_t KeyValueMemory::bytes_for(const ModelConfig& config, at::ScalarType dtype, int64_t num_blocks) {
  return config.num_layers * 2 * num_blocks * config.kv_size() * kPagedBlock * static_cast<int64_t>(c10::elementSize(dtype));
}

void KeyValueMemory::copy(std::span<const BlockCopy> copies) const {
  for (const BlockCopy& copy : copies) all_.select(2, copy.to).copy_(all_.select(2, copy.from));
}

}  // namespace kedge
