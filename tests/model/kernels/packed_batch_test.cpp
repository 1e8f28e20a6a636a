#include "kedge/model/kernels/packed_batch.h"

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>

#include "kedge/core/error.h"

#include "tests/support/tensors.h"

namespace kedge {
namespace {

using Rows = std::vector<std::vector<int32_t>>;

TEST(PackedBatch, RowsLieEndToEnd) {
  const PackedBatch batch = pack_rows(Rows{{7, 8, 9}, {4}, {5, 6}}, at::kCPU);
  EXPECT_TRUE(at::equal(batch.ids, testing::longs({7, 8, 9, 4, 5, 6})));
  EXPECT_TRUE(at::equal(batch.positions, testing::longs({0, 1, 2, 0, 0, 1})));
  EXPECT_TRUE(at::equal(batch.offsets, at::tensor({0, 3, 4, 6}, at::kInt)));
  EXPECT_EQ(batch.lengths, (std::vector<int64_t>{3, 1, 2}));
  EXPECT_EQ(batch.max_length, 3);
  EXPECT_EQ(batch.num_tokens(), 6);
  EXPECT_EQ(batch.num_rows(), 3);
}

TEST(PackedBatch, EveryTokenButARowsFirstIsPredictedFromTheOneBefore) {
  const PredictedTokens predicted = predicted_tokens(pack_rows(Rows{{7, 8, 9}, {4}, {5, 6}}, at::kCPU));
  EXPECT_TRUE(at::equal(predicted.places, testing::longs({0, 1, 4})));
  EXPECT_TRUE(at::equal(predicted.targets, testing::longs({8, 9, 6})));
}

TEST(PackedBatch, ARowOfOneTokenPredictsNothing) {
  const PredictedTokens predicted = predicted_tokens(pack_rows(Rows{{7}}, at::kCPU));
  EXPECT_EQ(predicted.places.numel(), 0);
  EXPECT_EQ(predicted.targets.numel(), 0);
}

TEST(PackedBatch, EmptyRowsAndBatchesAreBugs) {
  EXPECT_THROW(static_cast<void>(pack_rows(Rows{{1}, {}}, at::kCPU)), Bug);
  EXPECT_THROW(static_cast<void>(pack_rows(Rows{}, at::kCPU)), Bug);
}

TEST(PackedBatch, RowsAreTakenUpToANumberOfTokens) {
  const Rows rows = {{1, 2, 3}, {4}, {5, 6}};
  EXPECT_EQ(rows_within(rows, 0), 3U);
  EXPECT_EQ(rows_within(rows, 6), 3U);
  EXPECT_EQ(rows_within(rows, 5), 2U);
  EXPECT_EQ(rows_within(rows, 2), 1U);  // one that is too long goes alone
  EXPECT_EQ(rows_within(Rows{}, 5), 0U);
}

}  // namespace
}  // namespace kedge
