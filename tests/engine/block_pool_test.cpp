#include "kedge/engine/block_pool.h"

#include <gtest/gtest.h>

#include "kedge/core/error.h"

namespace kedge {
namespace {

TEST(BlockPool, HandsOutEveryBlockOnceAndThenNone) {
  BlockPool pool(3, 4);
  EXPECT_EQ(pool.take(), 0);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_EQ(pool.take(), 2);
  EXPECT_EQ(pool.take(), std::nullopt);
  pool.release(1);
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_EQ(pool.take(), 1);
}

TEST(BlockPool, ASharedBlockIsFreeWhenItsLastHolderLetsGo) {
  BlockPool pool(1, 4);
  const BlockId block = *pool.take();
  pool.share(block);
  EXPECT_EQ(pool.num_holders(block), 2);
  pool.release(block);
  EXPECT_EQ(pool.num_free(), 0);
  pool.release(block);
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_THROW(pool.release(block), Bug);
  EXPECT_THROW(pool.share(block), Bug);
}

TEST(BlockPool, CountsBlocksForTokens) {
  const BlockPool pool(0, 16);
  EXPECT_EQ(pool.blocks_for(0), 0);
  EXPECT_EQ(pool.blocks_for(1), 1);
  EXPECT_EQ(pool.blocks_for(16), 1);
  EXPECT_EQ(pool.blocks_for(17), 2);
}

}  // namespace
}  // namespace kedge
