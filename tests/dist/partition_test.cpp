#include "kedge/dist/partition.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

TEST(Partition, SharesCoverEverythingOnce) {
  EXPECT_EQ(share_of(8, 0, 2), (Share{0, 4}));
  EXPECT_EQ(share_of(8, 1, 2), (Share{4, 8}));
  EXPECT_EQ(share_of(8, 0, 3), (Share{0, 2}));
  EXPECT_EQ(share_of(8, 1, 3), (Share{2, 5}));
  EXPECT_EQ(share_of(8, 2, 3), (Share{5, 8}));
  EXPECT_EQ(share_of(1, 0, 2), (Share{0, 0}));
}

}  // namespace
}  // namespace kedge
