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

TEST(Partition, ByItsSizeEachGoesToTheRankWithTheLeast) {
  const std::vector<int64_t> sizes = {3, 9, 1, 5, 4};
  EXPECT_EQ(share_by_size(sizes, 0, 2), (std::vector<int64_t>{0, 1}));  // 9, then 3: the other has 5 + 4 by then
  EXPECT_EQ(share_by_size(sizes, 1, 2), (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(share_by_size(sizes, 0, 1), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(share_by_size(std::vector<int64_t>{7}, 1, 2).empty());
}

}  // namespace
}  // namespace kedge
