#include "kedge/model/kernels/cpu_attention.h"

#include <gtest/gtest.h>

#include <numeric>

#include <ATen/Parallel.h>
#include <ATen/ops/zeros_like.h>

#include "kedge/core/autograd.h"

#include "tests/support/plain_network.h"
#include "tests/support/shared_rows.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::leaf;
using testing::normals;
using testing::relative_error;
using testing::same_bits;

struct Result {
  Tensor out, dqkv;
};

class Rows {
 public:
  Rows(AttentionShape shape, at::ScalarType dtype) : shape_(shape), dtype_(dtype) {}

  // Rows [begin, end) of a fixed list, in one batch.
  [[nodiscard]] Result run(size_t begin, size_t end) const {
    std::vector<std::vector<int32_t>> rows;
    std::vector<Tensor> qkv, dout;
    for (size_t i = begin; i < end; ++i) {
      rows.emplace_back(static_cast<size_t>(kLengths[i]), 0);
      qkv.push_back(normals({kLengths[i], (shape_.num_heads + 2 * shape_.num_kv_heads) * shape_.head_dim}, i, 1, dtype_));
      dout.push_back(normals({kLengths[i], shape_.num_heads * shape_.head_dim}, 100 + i, 1, dtype_));
    }
    const PackedBatch batch = pack_rows(rows, at::kCPU);
    const Tensor all = at::cat(qkv);
    const Attended attended = cpu::attention(all, batch, shape_);
    return {attended.out, cpu::attention_backward(at::cat(dout), all, attended, batch, shape_)};
  }

  static constexpr std::array<int64_t, 6> kLengths = {3, 70, 1, 200, 64, 9};

 private:
  AttentionShape shape_;
  at::ScalarType dtype_;
};

const std::vector<AttentionShape> kShapes = {{4, 2, 16, 0}, {4, 2, 16, 10}, {3, 1, 5, 0}, {2, 2, 64, 65}};

TEST(CpuAttention, ARowsBitsDoNotDependOnItsNeighbours) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const AttentionShape& shape : kShapes) {
      const Rows rows(shape, dtype);
      const Result together = rows.run(0, Rows::kLengths.size());
      int64_t start = 0;
      for (size_t i = 0; i < Rows::kLengths.size(); ++i) {
        const Result alone = rows.run(i, i + 1);
        EXPECT_TRUE(same_bits(alone.out, together.out.narrow(0, start, Rows::kLengths[i]))) << i;
        EXPECT_TRUE(same_bits(alone.dqkv, together.dqkv.narrow(0, start, Rows::kLengths[i]))) << i;
        start += Rows::kLengths[i];
      }
    }
}

TEST(CpuAttention, TheNumberOfThreadsChangesNoBit) {
  const int before = at::get_num_threads();
  for (const AttentionShape& shape : kShapes) {
    const Rows rows(shape, at::kFloat);
    at::set_num_threads(1);
    const Result single = rows.run(0, Rows::kLengths.size());
    for (const int count : {2, 5}) {
      at::set_num_threads(count);
      const Result many = rows.run(0, Rows::kLengths.size());
      EXPECT_TRUE(same_bits(single.out, many.out));
      EXPECT_TRUE(same_bits(single.dqkv, many.dqkv));
    }
  }
  at::set_num_threads(before);
}

// A prefix's tokens see the same keys whatever follows, so decoding can give a trainer's bits.
TEST(CpuAttention, TokensBehindChangeNoBit) {
  const AttentionShape shape{4, 2, 16, 0};
  const Tensor qkv = normals({150, 8 * 16}, 1);
  const auto out_of = [&](int64_t length) {
    const std::vector<std::vector<int32_t>> rows = {std::vector<int32_t>(static_cast<size_t>(length), 0)};
    return cpu::attention(qkv.narrow(0, 0, length), pack_rows(rows, at::kCPU), shape).out;
  };
  const Tensor whole = out_of(150);
  for (const int64_t length : {1, 7, 8, 9, 63, 64, 65, 130}) EXPECT_TRUE(same_bits(out_of(length), whole.narrow(0, 0, length))) << length;
}

// fp32 inside, one rounding at the end: 2^-9 of a number, and dqkv's sums see the rounded output of the forward.
TEST(CpuAttention, Bf16IsRoundedOnlyAtTheEnd) {
  for (const AttentionShape& shape : kShapes) {
    const int64_t width = (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim;
    const Tensor qkv = normals({90, width}, 1, 1, at::kBFloat16),
                 dout = normals({90, shape.num_heads * shape.head_dim}, 2, 1, at::kBFloat16);
    const std::vector<std::vector<int32_t>> rows = {std::vector<int32_t>(80, 0), std::vector<int32_t>(10, 0)};
    const PackedBatch batch = pack_rows(rows, at::kCPU);
    const Attended found = cpu::attention(qkv, batch, shape);
    const Tensor dqkv = cpu::attention_backward(dout, qkv, found, batch, shape);
    const Tensor qkv_leaf = leaf(qkv);
    const Tensor wanted = testing::plain_attention(qkv_leaf, {80, 10}, shape);
    backward((wanted * dout.to(at::kDouble)).sum());
    EXPECT_LT(relative_error(found.out, wanted), 0x1p-8);
    EXPECT_LT(relative_error(dqkv, qkv_leaf.grad()), 0x1p-7);
  }
}

// Lengths on both sides of a block of keys and of the queries that are taken together.
const testing::PromptLengths kPrompts = {{63, {1, 2, 9}}, {64, {70, 8}}, {1, {3, 3}}, {20, {5}}, {7, {60, 1, 66, 2}}, {130, {17, 64}}};

TEST(CpuAttention, ASharedPromptChangesNoBitOfWhatIsSeen) {
  const testing::SharedRows rows = testing::shared_rows(kPrompts);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const AttentionShape& shape : kShapes) {
      const int64_t width = (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim;
      const Tensor qkv = normals({rows.shared.num_tokens(), width}, 1, 1, dtype);
      const Attended shared = cpu::attention(qkv, rows.shared, shape);
      const Attended apart = cpu::attention(qkv.index_select(0, rows.places), rows.apart, shape);
      EXPECT_TRUE(same_bits(shared.out.index_select(0, rows.places), apart.out));
      EXPECT_TRUE(same_bits(shared.log_sum.index_select(1, rows.places), apart.log_sum));
    }
}

// Of the queries bit for bit; those of a prompt's keys and values are sums over its answers.
TEST(CpuAttention, TheGradientOfASharedPromptIsTheSumOverItsAnswers) {
  const testing::SharedRows rows = testing::shared_rows(kPrompts);
  for (const AttentionShape& shape : kShapes) {
    const int64_t width = (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim, q = shape.num_heads * shape.head_dim;
    const Tensor qkv = normals({rows.shared.num_tokens(), width}, 1), dout = normals({rows.shared.num_tokens(), q}, 2);
    const Tensor found = cpu::attention_backward(dout, qkv, cpu::attention(qkv, rows.shared, shape), rows.shared, shape);
    // Copies of a prompt have no loss of their own.
    const Tensor apart = qkv.index_select(0, rows.places);
    const Tensor dapart = dout.index_select(0, rows.places).masked_fill(rows.is_copy.unsqueeze(1), 0);
    const Tensor copies = cpu::attention_backward(dapart, apart, cpu::attention(apart, rows.apart, shape), rows.apart, shape);
    const Tensor wanted = at::zeros_like(qkv).index_add(0, rows.places, copies);
    EXPECT_TRUE(same_bits(found.narrow(1, 0, q).contiguous(), wanted.narrow(1, 0, q).contiguous()));
    EXPECT_LT(relative_error(found, wanted), 1e-6);
  }
}

TEST(CpuAttention, TheGradientOfASharedPromptDoesNotDependOnThreads) {
  const testing::SharedRows rows = testing::shared_rows(kPrompts);
  const AttentionShape shape{4, 2, 16, 0};
  const Tensor qkv = normals({rows.shared.num_tokens(), 128}, 1), dout = normals({rows.shared.num_tokens(), 64}, 2);
  const Attended attended = cpu::attention(qkv, rows.shared, shape);
  const int before = at::get_num_threads();
  std::vector<Tensor> found;
  for (const int count : {1, 2, 5}) {
    at::set_num_threads(count);
    found.push_back(cpu::attention_backward(dout, qkv, attended, rows.shared, shape));
  }
  at::set_num_threads(before);
  EXPECT_TRUE(same_bits(found[0], found[1]));
  EXPECT_TRUE(same_bits(found[0], found[2]));
}

}  // namespace
}  // namespace kedge
