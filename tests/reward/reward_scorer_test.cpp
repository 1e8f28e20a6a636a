#include "kedge/reward/reward_scorer.h"

#include <gtest/gtest.h>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::rows_of;
using testing::same_bits;

std::unique_ptr<Model> judge(int64_t num_labels, at::ScalarType dtype = at::kFloat) {
  return testing::tiny_model(testing::kTinyLlama, {.dtype = dtype}, {HeadKind::score, num_labels, false});
}

TEST(RewardScorer, ARewardIsThatOfTheHeadAtTheLastToken) {
  const auto model = judge(1);
  const auto rows = rows_of({3, 9, 1, 5});
  const Tensor rewards = RewardScorer(*model, {.max_tokens = 9}).score(rows);
  EXPECT_EQ(rewards.sizes(), (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(rewards.scalar_type(), at::kFloat);
  EXPECT_FALSE(rewards.requires_grad());
  for (size_t i = 0; i < rows.size(); ++i) {
    const Tensor wanted = token_scores(*model, pack_rows({&rows[i], 1}, at::kCPU))[static_cast<int64_t>(rows[i].size()) - 1];
    EXPECT_TRUE(same_bits(rewards[static_cast<int64_t>(i)], wanted)) << i;
  }
}

// On the CPU a row's bits are its own, whatever stands beside it and however rows are cut into passes.
TEST(RewardScorer, ARowDoesNotSeeItsCompanions) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto model = judge(2, dtype);
    const auto rows = rows_of({7, 2, 30, 1, 12, 12, 4, 21, 3});
    const Tensor together = RewardScorer(*model, {}).score(rows);
    for (const int64_t tokens : {1, 8, 32, 1000})
      EXPECT_TRUE(same_bits(RewardScorer(*model, {.max_tokens = tokens}).score(rows), together)) << tokens;
    for (size_t i = 0; i < rows.size(); ++i)
      EXPECT_TRUE(same_bits(RewardScorer(*model, {}).score({&rows[i], 1})[0], together[static_cast<int64_t>(i)])) << i;
  }
}

TEST(RewardScorer, PoolingIsAsTheFolderSays) {
  const auto model = judge(1);
  const auto rows = rows_of({4, 6});
  note_pooling(*model, Pooling::mean);
  const Tensor mean = RewardScorer(*model, {}).score(rows);
  EXPECT_TRUE(same_bits(mean, row_scores(*model, pack_rows(rows, at::kCPU), Pooling::mean)));
  EXPECT_FALSE(same_bits(RewardScorer(*model, {.pooling = Pooling::last}).score(rows), mean));
}

TEST(RewardScorer, AttributesComeOneByOneOrMerged) {
  const auto model = judge(3);
  const auto rows = rows_of({4, 6});
  const Tensor all = RewardScorer(*model, {}).score(rows);
  EXPECT_EQ(all.sizes(), (std::vector<int64_t>{2, 3}));
  const RewardScorer merged(*model, {.merge_attributes = true});
  EXPECT_EQ(merged.num_rewards(), 1);
  EXPECT_TRUE(same_bits(merged.score(rows), all.mean(1, true)));
  // The sum of three products of fp32 numbers near 1, taken in another order: a few ulp.
  const Tensor weighted = RewardScorer(*model, {.merge_attributes = true, .attribute_weights = {1, 0, -2}}).score(rows);
  EXPECT_LT(testing::largest_difference(weighted.select(1, 0), all.select(1, 0) - 2 * all.select(1, 2)), 1e-6);
}

TEST(RewardScorer, RewardsAreStandardised) {
  const auto model = judge(1);
  const auto rows = rows_of({4, 6});
  const Tensor raw = RewardScorer(*model, {}).score(rows);
  EXPECT_TRUE(same_bits(RewardScorer(*model, {.standardization = {true, 0.5, 2}}).score(rows), (raw - 0.5) / 2));
  EXPECT_TRUE(same_bits(RewardScorer(*model, {.standardization = {false, 0.5, 2}}).score(rows), raw));
  // Of attributes that are merged into one reward, that one.
  const auto three = judge(3);
  const Tensor merged = RewardScorer(*three, {.merge_attributes = true}).score(rows);
  EXPECT_TRUE(
      same_bits(RewardScorer(*three, {.merge_attributes = true, .standardization = {true, 0.5, 2}}).score(rows), (merged - 0.5) / 2));
}

TEST(RewardScorer, SettingsThatDoNotFitTheModel) {
  const auto one = judge(1), three = judge(3);
  EXPECT_EQ(error_of([&] {
              return RewardScorer(*three, {.attribute_weights = {1, 2}}).num_rewards();
            }),
            "model.regression.attribute_weights: 2 weights for 3 labels");
  EXPECT_EQ(error_of([&] {
              return RewardScorer(*three, {.standardization = {true, 0, 1}}).num_rewards();
            }),
            "model.reward_standardization: standardises the one reward of a ranking model; this one has 3 labels");
  EXPECT_EQ(error_of([&] {
              return RewardScorer(*one, {.standardization = {true, 0, 1}, .is_regression = true}).num_rewards();
            }),
            "model.reward_standardization: standardises the one reward of a ranking model; this one has 1 attribute");
}

TEST(RewardScorer, NoRowsGiveNoRewards) {
  const auto model = judge(2);
  EXPECT_EQ(RewardScorer(*model, {}).score({}).sizes(), (std::vector<int64_t>{0, 2}));
}

}  // namespace
}  // namespace kedge
