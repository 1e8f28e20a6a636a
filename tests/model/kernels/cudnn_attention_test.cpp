// Attention by cuDNN beside flash attention, on a GPU that it is for. What both compute beside the plain formulas: cuda_kernels_test.cpp.
#include "kedge/model/kernels/cudnn_attention.h"

#include <gtest/gtest.h>

#include <ATen/Context.h>

#include "kedge/core/device.h"

#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::normals;
using testing::relative_error;
using testing::same_bits;

// Of a unit of 8 bits.
constexpr double kRounding = 0x1p-7;

TEST(CudnnAttention, IsForGpusAlone) { EXPECT_FALSE(cuda::is_cudnn_suited(normals({4, 3 * 64}, 1, 1, at::kBFloat16), {1, 1, 64, 0})); }

class CudnnAttentionOnTheGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device";
    if (!cuda::is_cudnn_suited(random(1, 3 * 64, 1), {1, 1, 64, 0})) GTEST_SKIP() << cuda::describe_cudnn_attention(0);
  }

  static Tensor random(int64_t rows, int64_t columns, uint64_t seed) {
    return normals({rows, columns}, seed, 1, at::kBFloat16).to(at::Device(at::kCUDA, 0));
  }
  static PackedBatch batch_of(const std::vector<int64_t>& lengths) {
    std::vector<std::vector<int32_t>> rows;
    for (const int64_t length : lengths) rows.emplace_back(static_cast<size_t>(length), 0);
    return pack_rows(rows, {at::kCUDA, 0});
  }
};

// Plans are for rounded shapes, so a batch's results must not depend on what the plan was made for: rows alone and beside longer ones.
TEST_F(CudnnAttentionOnTheGpu, ARowIsTheSameBesideLongerOnes) {
  const AttentionShape shape{4, 2, 64, 0};
  const Tensor qkv = random(1190, 8 * 64, 1), dout = random(1190, 4 * 64, 2);
  const PackedBatch both = batch_of({190, 1000}), alone = batch_of({190});
  const Tensor own_qkv = qkv.narrow(0, 0, 190), own_dout = dout.narrow(0, 0, 190);
  const Attended found = attention(qkv, both, shape), wanted = attention(own_qkv, alone, shape);
  EXPECT_LT(relative_error(found.out.narrow(0, 0, 190), wanted.out), kRounding);
  EXPECT_LT(relative_error(found.log_sum.narrow(1, 0, 190), wanted.log_sum), 1e-5);
  EXPECT_LT(relative_error(attention_backward(dout, qkv, found, both, shape).narrow(0, 0, 190),
                           attention_backward(own_dout, own_qkv, wanted, alone, shape)),
            2 * kRounding);
}

// What cuDNN has computed, flash attention can continue with, whose sums are always in the same order.
TEST_F(CudnnAttentionOnTheGpu, AFixedOrderGivesTheSameBits) {
  const PackedBatch batch = batch_of({300, 1, 77, 260});
  for (const int64_t head_dim : {64, 128}) {
    const AttentionShape shape{8, 2, head_dim, 0};
    const Tensor qkv = random(638, 12 * head_dim, 1), dout = random(638, 8 * head_dim, 2);
    const Attended found = attention(qkv, batch, shape);
    const Tensor anyhow = attention_backward(dout, qkv, found, batch, shape);
    at::globalContext().setDeterministicAlgorithms(true, false);
    const Attended again = attention(qkv, batch, shape);
    const Tensor first = attention_backward(dout, qkv, again, batch, shape), second = attention_backward(dout, qkv, again, batch, shape);
    at::globalContext().setDeterministicAlgorithms(false, false);
    EXPECT_TRUE(same_bits(found.out, again.out));
    EXPECT_TRUE(same_bits(first, second));
    EXPECT_LT(relative_error(first, anyhow), 2 * kRounding);
  }
}

// Generation has flash attention: the same numbers but for rounding.
TEST_F(CudnnAttentionOnTheGpu, GenerationComputesTheSameWithoutIt) {
  const AttentionShape shape{6, 2, 128, 0};
  const Tensor qkv = random(500, 10 * 128, 1);
  const PackedBatch batch = batch_of({200, 300});
  EXPECT_LT(relative_error(attention(qkv, batch, shape, AttentionUse::generation).out, attention(qkv, batch, shape).out), kRounding);
}

}  // namespace
}  // namespace kedge
