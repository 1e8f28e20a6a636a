#pragma once
// Which sequences hold which block of the KV cache. A block has room for a fixed number of tokens; several sequences may hold one together
// as long as none writes to it. Independent of tensors and sequences.
#include <cstdint>
#include <optional>
#include <vector>

namespace kedge {

using BlockId = int32_t;

// Not thread-safe.
class BlockPool {
 public:
  BlockPool(int64_t num_blocks, int64_t block_size);

  [[nodiscard]] int64_t num_blocks() const { return static_cast<int64_t>(holders_.size()); }
  [[nodiscard]] int64_t block_size() const { return block_size_; }  // in tokens
  [[nodiscard]] int64_t num_free() const { return static_cast<int64_t>(free_.size()); }
  // How many blocks hold this many tokens.
  [[nodiscard]] int64_t blocks_for(int64_t num_tokens) const { return (num_tokens + block_size_ - 1) / block_size_; }

  // A free block, held once; nothing if there is none.
  [[nodiscard]] std::optional<BlockId> take();
  // One more holder.
  void share(BlockId block);
  // One holder less; without any the block is free again.
  void release(BlockId block);
  [[nodiscard]] int64_t num_holders(BlockId block) const { return holders_[static_cast<size_t>(block)]; }

 private:
  int64_t block_size_;
  std::vector<int64_t> holders_;
  std::vector<BlockId> free_;  // the last is taken next
};

}  // namespace kedge
