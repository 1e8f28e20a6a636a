#include "kedge/train/checkpoint/cuda_bit_sum.h"

#include <gtest/gtest.h>

#include <ATen/ops/zeros.h>

#include "kedge/core/bit_hash.h"
#include "kedge/core/device.h"
#include "kedge/train/checkpoint/weights_hash.h"

#include "tests/support/tensors.h"

namespace kedge {
namespace {

std::string_view bytes_of(const Tensor& weights) { return {static_cast<const char*>(weights.const_data_ptr()), weights.nbytes()}; }

TEST(CudaBitSum, HashesAreThoseOfTheCpu) {
  if (num_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device";
  for (const int64_t size : {1, 255, 256, 257, 1 << 20, 3000017}) {
    const Tensor weights = testing::normals({size}, 1);
    EXPECT_EQ(weights_hash(weights.to(at::kCUDA)), bit_hash(bytes_of(weights))) << size;
  }
  EXPECT_EQ(weights_hash(at::zeros({0}, at::kCUDA)), bit_hash(""));
}

TEST(CudaBitSum, RowsThatLieApartCountByTheirPlaces) {
  if (num_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device";
  const Tensor rows = testing::normals({700, 1100}, 2), sum = at::zeros({}, at::TensorOptions(at::kCUDA).dtype(at::kLong));
  uint64_t wanted = 0;
  for (int64_t row = 0; row < rows.size(0); ++row) wanted += bit_sum(bytes_of(rows[row]), static_cast<uint64_t>(5 + row * 4000));
  cuda::add_bit_sum(sum, rows.to(at::kCUDA), 5, 4000);
  EXPECT_EQ(static_cast<uint64_t>(sum.item<int64_t>()), wanted);
}

}  // namespace
}  // namespace kedge
