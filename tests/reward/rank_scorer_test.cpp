// Of the 2 or 3 ranks that mpirun has started.
#include "kedge/reward/rank_scorer.h"

#include <gtest/gtest.h>

#include "tests/support/judge_folder.h"
#include "tests/support/ranks.h"

namespace kedge {
namespace {

using testing::mesh;

const std::vector<TokenIds> kScoredRows = {{1, 2, 3, 4, 5}, {7}, {9, 8}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {200, 3, 4}};

TEST(RankScorer, GivesTheBitsOfOneRank) {
  const testing::JudgeFolder judge(2);
  const auto model = judge.load();
  const RewardScorer scorer(*model, {.max_tokens = 8});
  const RankScorer ranked(scorer, mesh());
  if (mesh().world.rank() > 0) return ranked.follow();
  const Tensor alone = scorer.score(kScoredRows);
  EXPECT_TRUE(at::equal(ranked.score(kScoredRows), alone));
  EXPECT_TRUE(at::equal(ranked.score(std::span(kScoredRows).first(1)), alone.narrow(0, 0, 1))) << "where the others have no rows";
  ranked.stop();
}

TEST(RankScorer, ABatchThatFailsOnOneRankFailsAndTheNextOneWorks) {
  const testing::JudgeFolder judge;
  const auto model = judge.load();
  const RewardScorer scorer(*model, {});
  const RankScorer ranked(scorer, mesh());
  if (mesh().world.rank() > 0) return ranked.follow();
  for (size_t bad = 0; bad < kScoredRows.size(); ++bad) {
    std::vector<TokenIds> rows = kScoredRows;
    rows[bad][0] = 100000;  // no such id
    EXPECT_ANY_THROW(static_cast<void>(ranked.score(rows)));
    EXPECT_TRUE(at::equal(ranked.score(kScoredRows), scorer.score(kScoredRows)));
  }
  ranked.stop();
}

TEST(RankScorer, RanksThatComputeTogetherGiveAboutTheSame) {
  if (mesh().world.size() != 2) GTEST_SKIP() << "the toy's heads divide by 2";
  const testing::JudgeFolder judge;
  const Mesh split = mesh().with_tensor_ranks(2);
  const auto whole = judge.load(), part = judge.load({.tensor = split.tensor});
  const RewardScorer alone(*whole, {}), scorer(*part, {});
  const RankScorer ranked(scorer, split);
  if (split.world.rank() > 0) return ranked.follow();
  EXPECT_TRUE(at::allclose(ranked.score(kScoredRows), alone.score(kScoredRows), 0, 1e-5));
  ranked.stop();
}

}  // namespace
}  // namespace kedge
