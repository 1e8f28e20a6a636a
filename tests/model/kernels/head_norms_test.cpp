#include "kedge/model/kernels/head_norms.h"

#include <gtest/gtest.h>

#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::normals;
using testing::same_bits;

// Each head of queries and keys is a row of its own to the norm; values pass.
TEST(HeadNorms, AreNormsOfEachHead) {
  const int64_t rows = 5, num_q = 4, num_k = 2, dim = 6;
  const auto weights_of = [&](uint64_t seed) { return NormWeights{normals({dim}, seed), {}, at::zeros({dim}), {}, NormKind::rms, 1e-5}; };
  const NormWeights q = weights_of(1), k = weights_of(2), own_q = weights_of(1), own_k = weights_of(2);
  const HeadNorms norms{.q = q, .k = k, .num_q = num_q, .num_k = num_k, .dim = dim};
  const Tensor qkv = normals({rows, (num_q + 2 * num_k) * dim}, 3), dout = normals(qkv.sizes(), 4), dqkv = dout.clone();
  const HeadNormed normed = norm_heads(qkv, norms);
  norm_heads_backward_(dqkv, qkv, normed.q, normed.k, norms);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t head = 0; head < num_q + 2 * num_k; ++head) {
      const auto part = [&](const Tensor& tensor) { return tensor[row].narrow(0, head * dim, dim).view({1, dim}).contiguous(); };
      if (head >= num_q + num_k) {
        EXPECT_TRUE(same_bits(part(normed.out), part(qkv)));
        EXPECT_TRUE(same_bits(part(dqkv), part(dout)));
        continue;
      }
      const NormWeights& weights = head < num_q ? own_q : own_k;
      const Normed alone = norm(part(qkv), weights);
      EXPECT_TRUE(same_bits(part(normed.out), alone.out)) << row << ' ' << head;
      EXPECT_TRUE(same_bits(part(dqkv), norm_backward(part(dout), part(qkv), alone, weights, {}))) << row << ' ' << head;
    }
  EXPECT_LT((q.weight_gradient - own_q.weight_gradient).abs().max().item<float>(), 1e-5);
  EXPECT_LT((k.weight_gradient - own_k.weight_gradient).abs().max().item<float>(), 1e-5);
}

}  // namespace
}  // namespace kedge
