#include "kedge/train/optim/gradient_norm.h"

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/norm.h>

#include "tests/support/tensors.h"

namespace kedge {
namespace {

constexpr int64_t kLeaf = ShardLayout::kLeaf;

TEST(GradientNorm, LeavesAreSummedWithoutRegardToTheRest) {
  const Tensor row = testing::normals({5 * kLeaf + 77}, 1);
  const Tensor sums = leaf_sums(row);
  ASSERT_EQ(sums.numel(), 6);
  for (int64_t leaf = 0; leaf < 6; ++leaf) {
    const Tensor alone = row.narrow(0, leaf * kLeaf, std::min(kLeaf, row.numel() - leaf * kLeaf)).clone();
    EXPECT_EQ(leaf_sums(alone)[0].item<double>(), sums[leaf].item<double>());
    const double wanted = alone.to(at::kDouble).square().sum().item<double>();
    EXPECT_NEAR(sums[leaf].item<double>(), wanted, 1e-12 * wanted);
  }
  EXPECT_TRUE(at::equal(leaf_sums(row.narrow(0, 2 * kLeaf, 2 * kLeaf)), sums.narrow(0, 2, 2)));
  EXPECT_EQ(leaf_sums(at::empty({0})).numel(), 0);
}

// Of one rank too it does not depend on threads or on the CPU's vectors, and fp32 sums would lose digits of a million numbers.
TEST(GradientNorm, OfOneRankIsExact) {
  const Parameters parameters({{.name = "weight", .shape = {1000, 1100}, .decays = true}}, {.trainable = true});
  parameters.flat_gradient().copy_(testing::normals({parameters.size()}, 3));
  const double wanted = parameters.flat_gradient().to(at::kDouble).norm().item<double>();
  EXPECT_NEAR(gradient_norm(parameters), wanted, 1e-12 * wanted);
}

TEST(GradientNorm, OneThatIsNotFiniteShows) {
  const Tensor row = at::ones({3 * kLeaf});
  row[kLeaf + 5].fill_(std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isinf(leaf_sums(row)[1].item<double>()));
  row[9].fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(std::isnan(leaf_sums(row)[0].item<double>()));
  EXPECT_EQ(leaf_sums(row)[2].item<double>(), static_cast<double>(kLeaf));
}

}  // namespace
}  // namespace kedge
