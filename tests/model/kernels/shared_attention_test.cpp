#include "kedge/model/kernels/shared_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include <ATen/ops/equal.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros_like.h>

#include "tests/support/shared_rows.h"

namespace kedge {
namespace {

using testing::normals;
using testing::relative_error;

// What flash attention computes, in fp64: rows of queries with rows of keys, and a backward from given outputs and sums.
class PlainKernel {
 public:
  explicit PlainKernel(AttentionShape shape) : shape_(shape) {}

  [[nodiscard]] RowKernel kernel() const {
    return {[*this](const HeadTensors& in, const KernelRows& rows) { return forward(in, rows); },
            [*this](const Tensor& dout, const HeadTensors& in, const Attended& saved, const KernelRows& rows) {
              return backward(dout, in, saved, rows);
            },
            join};
  }

 private:
  // Each part times its share of the softmax.
  static Tensor join(const Tensor& out, const Tensor& log_sum, const Tensor& other_out, const Tensor& other_log_sum) {
    const int64_t num_heads = log_sum.size(0);
    Tensor all = at::logaddexp(log_sum, other_log_sum);
    const auto weighted = [&](const Tensor& part, const Tensor& sum) {
      return part.unflatten(1, {num_heads, part.size(1) / num_heads}).to(at::kFloat) * (sum - all).exp_().t().unsqueeze(2);
    };
    out.copy_(weighted(out, log_sum).add_(weighted(other_out, other_log_sum)).flatten(1));
    return all;
  }

  // [heads, length, dim]
  [[nodiscard]] Tensor heads(const Tensor& x, int64_t start, int64_t length) const {
    const Tensor rows = x.narrow(0, start, length).to(at::kDouble).transpose(0, 1);
    return rows.repeat_interleave(shape_.num_heads / rows.size(0), 0);
  }
  [[nodiscard]] Tensor scores(const Tensor& q, const Tensor& k, bool causal) const {
    const Tensor scores = at::matmul(q, k.transpose(1, 2)) * shape_.scale();
    return causal ? scores.masked_fill(at::ones({q.size(1), k.size(1)}, at::kBool).triu(1), -INFINITY) : scores;
  }
  template <typename F>
  static void for_rows(const KernelRows& rows, F&& work) {
    for (int64_t r = 0; r + 1 < rows.offsets_q.size(0); ++r) {
      const auto at = [&](const Tensor& offsets, int64_t i) { return offsets[i].item<int64_t>(); };
      const int64_t q = at(rows.offsets_q, r), k = at(rows.offsets_k, r);
      const int64_t num_q = at(rows.offsets_q, r + 1) - q, num_k = at(rows.offsets_k, r + 1) - k;
      EXPECT_LE(num_q, rows.longest_q);
      EXPECT_LE(num_k, rows.longest_k);
      work(q, num_q, k, num_k);
    }
  }

  [[nodiscard]] Attended forward(const HeadTensors& in, const KernelRows& rows) const {
    Attended result{at::zeros({in.q.size(0), shape_.num_heads, shape_.head_dim}), at::zeros({shape_.num_heads, in.q.size(0)}), {}};
    for_rows(rows, [&](int64_t q, int64_t num_q, int64_t k, int64_t num_k) {
      const Tensor s = scores(heads(in.q, q, num_q), heads(in.k, k, num_k), rows.causal);
      result.log_sum.narrow(1, q, num_q).copy_(at::logsumexp(s, 2));
      result.out.narrow(0, q, num_q).copy_(at::matmul(s.softmax(2), heads(in.v, k, num_k)).transpose(0, 1));
    });
    result.out = result.out.flatten(1);
    return result;
  }

  [[nodiscard]] HeadTensors backward(const Tensor& dout, const HeadTensors& in, const Attended& saved, const KernelRows& rows) const {
    const HeadTensors d{at::zeros_like(in.q), at::zeros_like(in.k), at::zeros_like(in.v)};
    const auto by_head = [&](const Tensor& x) { return x.unflatten(1, {shape_.num_heads, shape_.head_dim}); };
    const auto grouped = [&](const Tensor& x) {
      return x.unflatten(0, {shape_.num_kv_heads, shape_.num_heads / shape_.num_kv_heads}).sum(1).transpose(0, 1);
    };
    for_rows(rows, [&](int64_t q, int64_t num_q, int64_t k, int64_t num_k) {
      const Tensor queries = heads(in.q, q, num_q), keys = heads(in.k, k, num_k), values = heads(in.v, k, num_k);
      const Tensor o = heads(by_head(saved.out), q, num_q), go = heads(by_head(dout), q, num_q);
      const Tensor probs = (scores(queries, keys, rows.causal) - saved.log_sum.narrow(1, q, num_q).to(at::kDouble).unsqueeze(2)).exp();
      const Tensor dscores = probs * (at::matmul(go, values.transpose(1, 2)) - (go * o).sum(2, true)) * shape_.scale();
      d.q.narrow(0, q, num_q).copy_(at::matmul(dscores, keys).transpose(0, 1));
      d.k.narrow(0, k, num_k).copy_(grouped(at::matmul(dscores.transpose(1, 2), queries)));
      d.v.narrow(0, k, num_k).copy_(grouped(at::matmul(probs.transpose(1, 2), go)));
    });
    return d;
  }

  AttentionShape shape_;
};

TEST(SharedAttention, TwoCallsOfAKernelEqualTheFormulas) {
  const testing::SharedRows rows = testing::shared_rows({{9, {4, 1, 7}}, {70, {3, 80}}, {5, {6}}, {1, {2, 2, 2, 2}}});
  for (const AttentionShape& shape : {AttentionShape{4, 2, 16}, AttentionShape{3, 1, 5}}) {
    const Tensor qkv = normals({rows.shared.num_tokens(), (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim}, 1);
    const Tensor dout = normals({rows.shared.num_tokens(), shape.num_heads * shape.head_dim}, 2);
    const RowKernel kernel = PlainKernel(shape).kernel();
    const Attended found = shared_attention(qkv, rows.shared, shape, kernel), wanted = attention(qkv, rows.shared, shape);
    EXPECT_LT(relative_error(found.out, wanted.out), 1e-5);
    EXPECT_LT(relative_error(found.log_sum / std::log(2.0), wanted.log_sum), 1e-5);
    EXPECT_LT(relative_error(shared_attention_backward(dout, qkv, found, rows.shared, shape, kernel),
                             attention_backward(dout, qkv, wanted, rows.shared, shape)),
              1e-5);
  }
}

TEST(SharedAttention, HeadsAreJoinedAsTheyWereSplit) {
  const AttentionShape shape{4, 2, 8, 0};
  const Tensor qkv = normals({5, 64}, 1);
  const HeadTensors parts = split_heads(qkv, shape);
  EXPECT_TRUE(at::equal(join_heads({parts.q.contiguous(), parts.k.contiguous(), parts.v.contiguous()}), qkv));
  // Queries that a kernel left beside room for the others stay where they are.
  const Tensor wide = at::zeros({5, 64});
  wide.narrow(1, 0, 32).copy_(qkv.narrow(1, 0, 32));
  const Tensor joined = join_heads({split_heads(wide, shape).q, parts.k.contiguous(), parts.v.contiguous()});
  EXPECT_TRUE(at::equal(joined, qkv));
  EXPECT_EQ(joined.const_data_ptr(), wide.const_data_ptr());
  // Some rows of a larger matrix are not such queries: what lies beside them is somebody else's.
  EXPECT_TRUE(at::equal(join_heads({parts.q.narrow(0, 2, 3), parts.k.narrow(0, 2, 3), parts.v.narrow(0, 2, 3)}), qkv.narrow(0, 2, 3)));
}

}  // namespace
}  // namespace kedge
