#include "kedge/model/kernels/attention.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"

#include "tests/support/plain_network.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::leaf;
using testing::normals;
using testing::relative_error;

PackedBatch ragged_batch(const std::vector<int64_t>& lengths) {
  std::vector<std::vector<int32_t>> rows;
  for (const int64_t length : lengths) rows.emplace_back(static_cast<size_t>(length), 0);
  return pack_rows(rows, at::kCPU);
}

void compare(const std::vector<int64_t>& lengths, const AttentionShape& shape, double spread = 1) {
  SCOPED_TRACE(kedge::str(shape.num_heads, "/", shape.num_kv_heads, " heads of ", shape.head_dim, ", window ", shape.window, ", ",
                          lengths.size(), " rows, the first of ", lengths[0]));
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const Tensor qkv = normals({tokens, (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim}, 1, spread);
  const Tensor dout = normals({tokens, shape.num_heads * shape.head_dim}, 2);
  const PackedBatch batch = ragged_batch(lengths);
  const Attended found = attention(qkv, batch, shape);
  const Tensor dqkv = attention_backward(dout, qkv, found, batch, shape);
  const Tensor qkv_leaf = leaf(qkv);
  const Tensor wanted = testing::plain_attention(qkv_leaf, lengths, shape);
  backward((wanted * dout.to(at::kDouble)).sum());
  EXPECT_LT(relative_error(found.out, wanted), 1e-5);
  EXPECT_LT(relative_error(dqkv, qkv_leaf.grad()), 1e-5);
}

TEST(Attention, EqualsThePlainFormulationForEveryHeadSizeGroupAndWindow) {
  for (const int64_t head_dim : {5, 16, 64})
    for (const auto& [heads, kv_heads] : {std::pair(4, 4), std::pair(4, 2), std::pair(3, 1)})
      for (const int64_t window : {0, 1, 7, 64, 100}) compare({1, 33, 129, 8}, {heads, kv_heads, head_dim, window});
}

TEST(Attention, EqualsThePlainFormulationForEveryLengthOfARow) {
  for (int64_t length = 1; length <= 200; length += length < 20 ? 1 : 9) {
    compare({length}, {2, 1, 16, 0});
    compare({length}, {2, 1, 16, 13});
  }
  for (const int64_t length : {63, 64, 65, 127, 128, 129, 192, 193}) compare({length}, {2, 1, 16, 64});
}

TEST(Attention, SharpDistributionsStayExact) { compare({70, 5}, {2, 2, 16, 0}, 6); }

TEST(Attention, TheFirstTokenOfARowIsItsOwnValue) {
  const AttentionShape shape{2, 1, 4, 0};
  const Tensor qkv = normals({5, 16}, 1);
  const Tensor out = attention(qkv, ragged_batch({2, 3}), shape).out;
  for (const int64_t first : {0, 2})
    for (const int64_t head : {0, 1}) EXPECT_LT(relative_error(out[first].narrow(0, head * 4, 4), qkv[first].narrow(0, 12, 4)), 1e-6);
}

TEST(Attention, ScalesByTheRootOfTheHeadSize) { EXPECT_EQ((AttentionShape{1, 1, 16, 0}).scale(), 0.25); }

TEST(Attention, FlashAttentionIsLeftOutWhereSomeGpusCannot) {
  for (const int64_t head_dim : {8, 64, 128, 192, 256}) EXPECT_TRUE(flash_takes(head_dim)) << head_dim;
  for (const int64_t head_dim : {5, 37, 200, 224, 264}) EXPECT_FALSE(flash_takes(head_dim)) << head_dim;
}

}  // namespace
}  // namespace kedge
