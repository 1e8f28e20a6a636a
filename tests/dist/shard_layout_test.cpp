#include "kedge/dist/shard_layout.h"

#include <gtest/gtest.h>

#include <random>

namespace kedge {
namespace {

std::vector<int64_t> random_ends(std::mt19937& random) {
  std::vector<int64_t> ends;
  int64_t end = 0;
  const auto count = static_cast<int>(random() % 8 + 1);
  for (int i = 0; i < count; ++i) ends.push_back(end += static_cast<int64_t>(random() % 20) * 128 * static_cast<int64_t>(random() % 30));
  return ends;
}

// Every element belongs to exactly one rank, parts of a bucket follow each other, and no leaf is cut.
TEST(ShardLayout, EveryElementHasOneOwner) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const int num_ranks = static_cast<int>(random() % 64 + 1);
    const ShardLayout layout(random_ends(random), num_ranks);
    int64_t total = 0;
    for (size_t b = 0; b < layout.num_buckets(); ++b) {
      int64_t end = layout.bucket(b).begin;
      for (int rank = 0; rank < num_ranks; ++rank) {
        const Share part = layout.part(b, rank);
        ASSERT_EQ(part.begin, end);
        ASSERT_LE(part.begin, part.end);
        ASSERT_TRUE((part.begin - layout.bucket(b).begin) % ShardLayout::kLeaf == 0 || part.begin == layout.bucket(b).end);
        end = part.end;
      }
      ASSERT_EQ(end, layout.bucket(b).end);
      total += length(layout.bucket(b));
    }
    ASSERT_EQ(total, layout.size());
    int64_t owned = 0;
    for (int rank = 0; rank < num_ranks; ++rank) owned += layout.own_size(rank);
    ASSERT_EQ(owned, total);
  }
}

// Nobody has more than his share and a leaf of every bucket.
TEST(ShardLayout, PartsAreAlmostEqual) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 500; ++trial) {
    const int num_ranks = static_cast<int>(random() % 16 + 1);
    const ShardLayout layout(random_ends(random), num_ranks);
    for (int rank = 0; rank < num_ranks; ++rank)
      EXPECT_LE(layout.own_size(rank), layout.size() / num_ranks + ShardLayout::kLeaf * static_cast<int64_t>(layout.num_buckets()));
  }
}

TEST(ShardLayout, OwnElementsAreCountedBucketByBucket) {
  const ShardLayout layout({5 * ShardLayout::kLeaf, 9 * ShardLayout::kLeaf}, 2);
  EXPECT_EQ(layout.part(0, 0), (Share{0, 2 * ShardLayout::kLeaf}));
  EXPECT_EQ(layout.part(0, 1), (Share{2 * ShardLayout::kLeaf, 5 * ShardLayout::kLeaf}));
  EXPECT_EQ(layout.own_begin(0, 1), 0);
  EXPECT_EQ(layout.own_begin(1, 1), 3 * ShardLayout::kLeaf);
  EXPECT_EQ(layout.own_size(1), 5 * ShardLayout::kLeaf);
}

}  // namespace
}  // namespace kedge
