#include "kedge/engine/block_pool.h"

#include "kedge/core/error.h"

namespace kedge {

BlockPool::BlockPool(int64_t num_blocks, int64_t block_size) : block_size_(block_size), holders_(static_cast<size_t>(num_blocks), 0) {
  ensure(num_blocks >= 0 && block_size > 0, "a pool of ", num_blocks, " blocks of ", block_size);
  for (int64_t block = num_blocks; block-- > 0;) free_.push_back(static_cast<BlockId>(block));  // low ones first
}

std::optional<BlockId> BlockPool::take() {
  if (free_.empty()) return std::nullopt;
  const BlockId block = free_.back();
  free_.pop_back();
  holders_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::share(BlockId block) {
  ensure(num_holders(block) > 0, "a free block is shared");
  ++holders_[static_cast<size_t>(block)];
}

void BlockPool::release(BlockId block) {
  ensure(num_holders(block) > 0, "a free block is released");
  if (--holders_[static_cast<size_t>(block)] == 0) free_.push_back(block);
}

}  // namespace kedge
