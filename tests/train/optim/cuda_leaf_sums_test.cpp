#include "kedge/train/optim/cuda_leaf_sums.h"

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>

#include "kedge/core/device.h"
#include "kedge/train/optim/gradient_norm.h"

#include "tests/support/tensors.h"

namespace kedge {
namespace {

TEST(CudaLeafSums, AreThoseOfTheCpuAndIndependentOfTheRest) {
  if (num_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device";
  constexpr int64_t kLeaf = ShardLayout::kLeaf;
  const Tensor row = testing::normals({9 * kLeaf + 5}, 1), here = row.to(at::kCUDA);
  const Tensor sums = leaf_sums(here).to(at::kCPU), wanted = leaf_sums(row);
  EXPECT_LT(((sums - wanted).abs() / wanted).max().item<double>(), 1e-12);
  const Tensor some = leaf_sums(here.narrow(0, 3 * kLeaf, 4 * kLeaf)).to(at::kCPU);
  EXPECT_TRUE(at::equal(some, sums.narrow(0, 3, 4)));
}

}  // namespace
}  // namespace kedge
