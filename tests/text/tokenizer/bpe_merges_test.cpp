#include "kedge/text/tokenizer/bpe_merges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace kedge {
namespace {

using ::testing::ElementsAre;

TokenIds apply(const BpeMerges& merges, TokenIds ids) {
  merges.apply(ids);
  return ids;
}

// The rule as it is written down: look for the lowest rank, leftmost first; merge it; start again.
TokenIds by_the_book(const std::vector<BpeMerges::Merge>& merges, TokenIds ids) {
  while (true) {
    size_t best_place = ids.size();
    const BpeMerges::Merge* best = nullptr;
    for (size_t i = 0; i + 1 < ids.size(); ++i)
      for (const auto& merge : merges)
        if (merge.left == ids[i] && merge.right == ids[i + 1] && (best == nullptr || merge.rank < best->rank))
          best = &merge, best_place = i;
    if (best == nullptr) return ids;
    ids[best_place] = best->merged;
    ids.erase(ids.begin() + static_cast<ptrdiff_t>(best_place) + 1);
  }
}

TEST(BpeMerges, TakesTheLowestRankFirst) {
  const BpeMerges merges(std::vector<BpeMerges::Merge>{{0, 1, 1, 10}, {1, 2, 0, 11}});
  EXPECT_THAT(apply(merges, {0, 1, 2}), ElementsAre(0, 11));
  EXPECT_THAT(apply(merges, {0, 1, 1}), ElementsAre(10, 1));
}

TEST(BpeMerges, AmongEqualsTheLeftmost) {
  const BpeMerges merges(std::vector<BpeMerges::Merge>{{0, 0, 0, 1}});
  EXPECT_THAT(apply(merges, {0, 0, 0}), ElementsAre(1, 0));
  EXPECT_THAT(apply(merges, {0, 0, 0, 0}), ElementsAre(1, 1));
}

TEST(BpeMerges, OfTheSamePairTheLastCounts) {
  const BpeMerges merges(std::vector<BpeMerges::Merge>{{0, 1, 0, 10}, {1, 2, 1, 11}, {0, 1, 2, 12}});
  EXPECT_THAT(apply(merges, {0, 1, 2}), ElementsAre(0, 11));
  EXPECT_THAT(apply(merges, {0, 1}), ElementsAre(12));
}

TEST(BpeMerges, WithoutMergesNothingChanges) {
  EXPECT_THAT(apply(BpeMerges(), {1, 2}), ElementsAre(1, 2));
  EXPECT_THAT(apply(BpeMerges(std::vector<BpeMerges::Merge>{}), {1, 2}), ElementsAre(1, 2));
  EXPECT_THAT(apply(BpeMerges(std::vector<BpeMerges::Merge>{{0, 1, 0, 2}}), {}), ElementsAre());
}

TEST(BpeMerges, ShortAndLongWordsMergeByTheBook) {
  std::mt19937 random(1);
  std::vector<BpeMerges::Merge> merges;
  for (TokenId merged = 4; merged < 40; ++merged) {  // later tokens are made of earlier ones; some ranks are equal
    const auto side = [&] { return static_cast<TokenId>(random() % static_cast<unsigned>(merged)); };
    const BpeMerges::Merge merge{side(), side(), static_cast<uint32_t>(merged / 2), merged};
    const auto same = [&](const BpeMerges::Merge& other) { return other.left == merge.left && other.right == merge.right; };
    if (std::none_of(merges.begin(), merges.end(), same)) merges.push_back(merge);
  }
  const BpeMerges table(merges);
  for (int round = 0; round < 300; ++round) {
    TokenIds ids(random() % 120);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % 5) - 1;  // -1 merges with nothing
    ASSERT_EQ(apply(table, ids), by_the_book(merges, ids)) << "round " << round;
  }
}

}  // namespace
}  // namespace kedge
