#include "kedge/model/kernels/attention.h"

#include <cmath>

#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>

#include "kedge/core/error.h"
#include "kedge/model/kernels/cpu_attention.h"

namespace kedge {
namespace {

struct Split {
  Tensor q, k, v;  // [tokens, heads, head_dim]
};

Split split(const Tensor& qkv, const AttentionShape& shape) {
  const int64_t dim = shape.head_dim, q = shape.num_heads * dim, kv = shape.num_kv_heads * dim;
  const auto part = [&](int64_t from, int64_t heads) { return qkv.narrow(1, from, heads * dim).unflatten(1, {heads, dim}); };
  return {part(0, shape.num_heads), part(q, shape.num_kv_heads), part(q + kv, shape.num_kv_heads)};
}

bool flash_can(const Tensor& qkv, const AttentionShape& shape) {
  return qkv.is_cuda() && qkv.scalar_type() == at::kBFloat16 && flash_takes(shape.head_dim);
}

std::optional<int64_t> left_of(const AttentionShape& shape) { return shape.window > 0 ? std::optional(shape.window - 1) : std::nullopt; }
std::optional<int64_t> right_of(const AttentionShape& shape) { return shape.window > 0 ? std::optional<int64_t>(0) : std::nullopt; }

// The plain formulas, row by row with all scores in memory: for what the fast kernels do not support (fp32 and odd head sizes on CUDA).
struct PlainRow {
  Tensor q, k, v;  // [kv_heads, group, length, dim]; k and v [kv_heads, 1, length, dim]
  Tensor probs;    // [kv_heads, group, length, length]
};

Tensor grouped(const Tensor& x, int64_t num_kv_heads) {  // [length, heads, dim] to [kv_heads, group, length, dim]
  return x.unflatten(1, {num_kv_heads, x.size(1) / num_kv_heads}).permute({1, 2, 0, 3});
}
Tensor ungrouped(const Tensor& x) { return x.permute({2, 0, 1, 3}).flatten(1, 2); }

PlainRow plain_row(const Split& all, int64_t start, int64_t length, const AttentionShape& shape) {
  const auto part = [&](const Tensor& x) { return grouped(x.narrow(0, start, length).to(at::kFloat), shape.num_kv_heads); };
  PlainRow row{part(all.q), part(all.k), part(all.v), {}};
  const Tensor at_row = at::arange(length, all.q.options().dtype(at::kLong));
  const Tensor ahead = at_row.unsqueeze(0) - at_row.unsqueeze(1);  // key minus query
  Tensor hidden = ahead.gt(0);
  if (shape.window > 0) hidden = hidden.logical_or(ahead.le(-shape.window));
  row.probs = at::matmul(row.q, row.k.transpose(-1, -2)).mul_(shape.scale()).masked_fill_(hidden, -INFINITY).softmax(-1);
  return row;
}

Attended plain_attention(const Tensor& qkv, const PackedBatch& batch, const AttentionShape& shape) {
  const Split all = split(qkv, shape);
  const Tensor out = at::empty({qkv.size(0), shape.num_heads, shape.head_dim}, qkv.options());
  int64_t start = 0;
  for (const int64_t length : batch.lengths) {
    const PlainRow row = plain_row(all, start, length, shape);
    out.narrow(0, start, length).copy_(ungrouped(at::matmul(row.probs, row.v)));
    start += length;
  }
  return {out.flatten(1), {}, {}};
}

Tensor plain_backward(const Tensor& dout, const Tensor& qkv, const PackedBatch& batch, const AttentionShape& shape) {
  const Split all = split(qkv, shape);
  const Tensor dqkv = at::empty_like(qkv);
  const Split gradient = split(dqkv, shape);
  const Tensor dheads = dout.unflatten(1, {shape.num_heads, shape.head_dim});
  int64_t start = 0;
  for (const int64_t length : batch.lengths) {
    const PlainRow row = plain_row(all, start, length, shape);
    const Tensor d = grouped(dheads.narrow(0, start, length).to(at::kFloat), shape.num_kv_heads);
    const Tensor dprobs = at::matmul(d, row.v.transpose(-1, -2));
    const Tensor dscores = row.probs * (dprobs - (dprobs * row.probs).sum(-1, true)) * shape.scale();
    const auto put = [&](const Tensor& to, const Tensor& from) { to.narrow(0, start, length).copy_(ungrouped(from)); };
    put(gradient.q, at::matmul(dscores, row.k));
    put(gradient.k, at::matmul(dscores.transpose(-1, -2), row.q).sum(1, true));
    put(gradient.v, at::matmul(row.probs.transpose(-1, -2), d).sum(1, true));
    start += length;
  }
  return dqkv;
}

}  // namespace

// From 200 to 224 channels its backward pass needs more shared memory than RTX cards have; no known model has such heads, so it is not
// used.
bool flash_takes(int64_t head_dim) { return head_dim % 8 == 0 && head_dim <= 256 && (head_dim <= 192 || head_dim > 224); }

double AttentionShape::scale() const { return 1.0 / std::sqrt(static_cast<double>(head_dim)); }

Attended attention(const Tensor& qkv, const PackedBatch& batch, const AttentionShape& shape) {
  if (!qkv.is_cuda()) return cpu::attention(qkv, batch, shape);
  if (!flash_can(qkv, shape)) return plain_attention(qkv, batch, shape);
  const Split all = split(qkv, shape);
  const auto [out, log_sum, random, unused, debug] =
      at::_flash_attention_forward(all.q, all.k, all.v, batch.offsets, batch.offsets, batch.max_length, batch.max_length, 0.0, true, false,
                                   shape.scale(), left_of(shape), right_of(shape));
  return {out.flatten(1), log_sum, random};
}

Tensor attention_backward(const Tensor& dout, const Tensor& qkv, const Attended& saved, const PackedBatch& batch,
                          const AttentionShape& shape) {
  if (!qkv.is_cuda()) return cpu::attention_backward(dout, qkv, saved, batch, shape);
  if (!flash_can(qkv, shape)) return plain_backward(dout, qkv, batch, shape);
  const Split all = split(qkv, shape);
  const std::vector<int64_t> heads = {shape.num_heads, shape.head_dim};
  const Tensor none = at::empty({0}, qkv.options().dtype(at::kLong));
  const auto [dq, dk, dv] = at::_flash_attention_backward(dout.unflatten(1, heads), all.q, all.k, all.v, saved.out.unflatten(1, heads),
                                                          saved.log_sum, batch.offsets, batch.offsets, batch.max_length, batch.max_length,
                                                          0.0, true, saved.random, none, shape.scale(), left_of(shape), right_of(shape));
  return at::cat({dq.flatten(1), dk.flatten(1), dv.flatten(1)}, 1);
}

}  // namespace kedge
