// What ranks that compute together exchange, by the ranks that mpirun has started.
#include "kedge/dist/tensor_ranks.h"

#include <gtest/gtest.h>

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>

#include "kedge/dist/partition.h"
#include "kedge/dist/transport.h"

#include "tests/support/ranks.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::normals;
using testing::world;

Tensor values_of(int rank, int64_t rows, at::ScalarType dtype) { return normals({rows, 70}, static_cast<uint64_t>(20 + rank)).to(dtype); }

// Small rows are sent as they are, larger ones in slices: both are sums in rank order, bf16 rounded once.
TEST(TensorRanks, SumsInTheOrderOfTheRanks) {
  const TensorRanks ranks(world());
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t rows : {1, 3, 2000}) {
      std::vector<Tensor> parts;
      for (int rank = 0; rank < world().size(); ++rank) parts.push_back(values_of(rank, rows, dtype).view({-1}));
      const Tensor wanted = at::empty_like(parts[0]), found = values_of(world().rank(), rows, dtype);
      sum_in_order(parts, wanted);
      ranks.sum_(found);
      EXPECT_TRUE(at::equal(found.view({-1}), wanted)) << rows;
    }
}

TEST(TensorRanks, NeighboursSumAmongThemselves) {
  if (world().size() % 2 != 0) GTEST_SKIP() << "needs pairs of ranks";
  const TensorRanks ranks(world());
  const int first = world().rank() / 2 * 2;
  const Tensor found = values_of(world().rank(), 4, at::kFloat);
  ranks.sum_(found, 2);
  EXPECT_TRUE(at::equal(found, values_of(first, 4, at::kFloat) + values_of(first + 1, 4, at::kFloat)));
}

TEST(TensorRanks, GathersColumnsOfDifferentWidths) {
  const TensorRanks ranks(world());
  const Tensor all = normals({5, 31}, 3);
  const Share own = share_of(31, world().rank(), world().size());
  EXPECT_TRUE(at::equal(ranks.gather_columns(all.narrow(1, own.begin, own.end - own.begin), 31), all));
}

// Fewer rows than ranks, too.
TEST(TensorRanks, SumsOfItsOwnRowsHaveTheBitsOfTheCompleteSum) {
  const TensorRanks ranks(world());
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const int64_t rows : {1, 3, 7, 2000}) {
      const Tensor mine = values_of(world().rank(), rows, dtype), before = mine.clone(), all = mine.clone();
      ranks.sum_(all);
      const Share own = share_of(rows, world().rank(), world().size());
      const Tensor found = ranks.sum_rows(mine);
      EXPECT_TRUE(at::equal(found, all.narrow(0, own.begin, own.end - own.begin))) << rows;
      EXPECT_TRUE(at::equal(mine, before)) << rows;
      EXPECT_TRUE(at::equal(ranks.gather_rows(found, rows), all)) << rows;
    }
}

TEST(TensorRanks, OneRankHasNothingToExchange) {
  const TensorRanks alone;
  const Tensor x = normals({2, 3}, 4), before = x.clone();
  alone.sum_(x);
  EXPECT_TRUE(at::equal(x, before));
  EXPECT_TRUE(at::equal(alone.gather_columns(x, 3), before));
  EXPECT_TRUE(at::equal(alone.sum_rows(x), before));
  EXPECT_TRUE(at::equal(alone.gather_rows(x, 2), before));
}

}  // namespace
}  // namespace kedge
