#include "kedge/model/kernels/shared_prompts.h"

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>

#include "kedge/core/error.h"

#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using Ids = std::vector<int32_t>;
using testing::longs;

TEST(SharedPrompts, PromptsComeFirstThenTheirAnswersThenRowsThatStandAlone) {
  const Ids a = {1, 2}, a1 = {3}, a2 = {4, 5}, b = {6}, b1 = {7, 8}, c = {9, 10, 11}, c1 = {12}, c2 = {13}, c3 = {14, 15}, none, d = {16};
  const std::vector<PromptAnswers> prompts = {{a, {a1, a2}}, {b, {b1}}, {c, {c1, c2, c3}}, {none, {a1, a2}}, {d, {}}};
  const PackedAnswers packed = pack_answers(prompts, at::kCPU);
  const PackedBatch& batch = packed.batch;
  EXPECT_TRUE(at::equal(batch.ids, longs({1, 2, 9, 10, 11, 3, 4, 5, 12, 13, 14, 15, 6, 7, 8, 3, 4, 5, 16})));
  EXPECT_TRUE(at::equal(batch.positions, longs({0, 1, 0, 1, 2, 2, 2, 3, 3, 3, 3, 4, 0, 1, 2, 0, 0, 1, 0})));
  EXPECT_EQ(batch.lengths, (std::vector<int64_t>{2, 3, 1, 2, 1, 1, 2, 3, 1, 2, 1}));
  EXPECT_EQ(batch.max_length, 5);
  EXPECT_EQ(packed.starts, (std::vector<std::vector<int64_t>>{{5, 6}, {13}, {8, 9, 10}, {15, 16}, {}}));
  EXPECT_EQ(batch.shared.num_answers, (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(at::equal(batch.shared.offsets, at::tensor({0, 3, 7}, at::kInt)));
  EXPECT_EQ(batch.shared.prompt_tokens, 5);
  EXPECT_EQ(batch.shared.answer_tokens, 7);
  EXPECT_EQ(batch.shared.longest_prompt, 3);
  EXPECT_EQ(batch.shared.longest_answers, 4);
  const std::vector<RowFamily> families = row_families(batch);
  ASSERT_EQ(families.size(), 6U);
  ASSERT_EQ(families[1].answers.size(), 3U);
  EXPECT_EQ(families[1].first.start, 2);
  EXPECT_EQ(families[1].answers[2].start, 10);
  EXPECT_EQ(families[1].answers[2].length, 2);
  EXPECT_TRUE(families[2].answers.empty());
}

TEST(SharedPrompts, WithoutSeveralAnswersNothingIsShared) {
  const Ids a = {1, 2}, a1 = {3}, b = {4};
  const PackedAnswers packed = pack_answers(std::vector<PromptAnswers>{{a, {a1}}, {b, {a1}}}, at::kCPU);
  EXPECT_FALSE(packed.batch.shares_prompts());
  EXPECT_TRUE(at::equal(packed.batch.ids, longs({1, 2, 3, 4, 3})));
  EXPECT_THROW(static_cast<void>(pack_answers({}, at::kCPU)), Bug);
}

TEST(SharedPrompts, AreNotForAnglesThatDependOnTheLengthOfARow) {
  ModelConfig model = testing::tiny_config(testing::kTinyLlama);
  EXPECT_TRUE(can_share_prompts(model, at::kCPU, 1000));
  model.rope.type = RopeType::dynamic;
  EXPECT_TRUE(can_share_prompts(model, at::kCPU, 64));
  EXPECT_FALSE(can_share_prompts(model, at::kCPU, 65));
}

TEST(SharedPrompts, OnAGpuWindowsMustBeAsLongAsTheRows) {
  const ModelConfig model = testing::tiny_config(testing::kTinyMistral);
  EXPECT_TRUE(can_share_prompts(model, at::kCPU, 4));
  EXPECT_TRUE(can_share_prompts(model, at::kCUDA, 3));
  EXPECT_FALSE(can_share_prompts(model, at::kCUDA, 4));
}

}  // namespace
}  // namespace kedge
