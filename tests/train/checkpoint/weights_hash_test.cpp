#include "kedge/train/checkpoint/weights_hash.h"

#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include "kedge/core/bit_hash.h"

namespace kedge {
namespace {

// Numbers of all signs and sizes, and more of them than one thread takes at a time.
Tensor some_weights(int64_t count = 200003) { return at::arange(count, at::kFloat).sub_(1000).mul_(1e-3F); }

std::string_view bytes_of(const Tensor& weights) { return {static_cast<const char*>(weights.const_data_ptr()), weights.nbytes()}; }

void flip(const Tensor& weights, int64_t element, unsigned bit) {
  weights.view(at::kInt)[element].bitwise_xor_(static_cast<int>(1U << bit));
}

TEST(WeightsHash, IsThatOfTheirBytes) {
  const Tensor weights = some_weights();
  EXPECT_EQ(weights_hash(weights), bit_hash(bytes_of(weights)));
  EXPECT_EQ(weights_hash(at::zeros({0})), bit_hash(""));
}

TEST(WeightsHash, OneFlippedBitAnywhereChangesIt) {
  const Tensor weights = some_weights();
  const std::string before = weights_hash(weights);
  for (const int64_t element : {int64_t{0}, int64_t{65535}, int64_t{65536}, int64_t{131072}, weights.numel() - 1})
    for (const unsigned bit : {0U, 13U, 31U}) {
      flip(weights, element, bit);
      EXPECT_NE(weights_hash(weights), before) << element << " " << bit;
      flip(weights, element, bit);
    }
  EXPECT_EQ(weights_hash(weights), before);
}

TEST(WeightsHash, TheirPlacesMatter) {
  const Tensor weights = some_weights(1000);
  EXPECT_NE(weights_hash(weights), weights_hash(weights.flip(0).contiguous()));
}

TEST(WeightsHash, ThreadsDoNotMatter) {
  const Tensor weights = some_weights();
  const int threads = at::get_num_threads();
  const std::string before = weights_hash(weights);
  at::set_num_threads(threads == 1 ? 3 : 1);
  EXPECT_EQ(weights_hash(weights), before);
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace kedge
