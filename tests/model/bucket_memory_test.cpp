#include "kedge/model/bucket_memory.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

TEST(BucketMemory, ViewsStayValidWhileMemoryComesAndGoes) {
  const Tensor row = row_without_memory(12, at::kFloat);
  const Tensor view = row.narrow(0, 4, 6).view({2, 3});
  EXPECT_FALSE(has_memory(row));
  for (int round = 0; round < 3; ++round) {
    take_memory(row);
    EXPECT_TRUE(has_memory(row));
    row.fill_(round);
    row[5].fill_(7);
    EXPECT_EQ(view[0][1].item<float>(), 7);
    EXPECT_EQ(view[1][2].item<float>(), static_cast<float>(round));
    give_memory_back(row);
    EXPECT_FALSE(has_memory(row));
    EXPECT_EQ(view.sizes(), (at::IntArrayRef{2, 3}));
  }
}

TEST(BucketMemory, TakenTwiceItKeepsItsContent) {
  const Tensor row = row_without_memory(3, at::kFloat);
  take_memory(row);
  row.fill_(5);
  take_memory(row);
  EXPECT_EQ(row[2].item<float>(), 5);
}

TEST(BucketMemory, NothingNeedsNoMemory) { EXPECT_TRUE(has_memory(row_without_memory(0, at::kFloat))); }

}  // namespace
}  // namespace kedge
