#include "kedge/model/kernels/attention.h"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>

#include "kedge/core/error.h"
#include "kedge/model/kernels/cpu_attention.h"
#include "kedge/model/kernels/cuda_kernels.h"
#include "kedge/model/kernels/cudnn_attention.h"
#include "kedge/model/kernels/shared_attention.h"

namespace kedge {
namespace {

bool flash_can(const Tensor& qkv, const AttentionShape& shape) {
  return qkv.is_cuda() && qkv.scalar_type() == at::kBFloat16 && flash_takes(shape.head_dim);
}

std::optional<int64_t> left_of(const AttentionShape& shape) { return shape.window > 0 ? std::optional(shape.window - 1) : std::nullopt; }
std::optional<int64_t> right_of(const AttentionShape& shape) { return shape.window > 0 ? std::optional<int64_t>(0) : std::nullopt; }

// cuDNN where it is wanted and supports the rows, else flash attention. The rows of a batch, or of parts of it.
RowKernel fast_kernel(const AttentionShape& shape, bool tries_cudnn) {
  const auto forward = [=](const HeadTensors& in, const KernelRows& rows) -> Attended {
    if (tries_cudnn)
      if (auto attended = cuda::cudnn_attention(in, rows, shape)) return *std::move(attended);
    const auto [out, log_sum, random, unused, debug] =
        at::_flash_attention_forward(in.q, in.k, in.v, rows.offsets_q, rows.offsets_k, rows.longest_q, rows.longest_k, 0.0, rows.causal,
                                     false, shape.scale(), left_of(shape), right_of(shape));
    return {out.flatten(1), log_sum, random};
  };
  const auto backward = [=](const Tensor& dout, const HeadTensors& in, const Attended& saved, const KernelRows& rows) -> HeadTensors {
    if (tries_cudnn)
      if (auto gradients = cuda::cudnn_attention_backward(dout, in, saved, rows, shape)) return *std::move(gradients);
    const std::vector<int64_t> heads = {shape.num_heads, shape.head_dim};
    const Tensor none = at::empty({0}, in.q.options().dtype(at::kLong));
    const Tensor random = saved.random.defined() ? saved.random : at::empty({2}, in.q.options().dtype(at::kUInt64));
    const auto [dq, dk, dv] = at::_flash_attention_backward(
        dout.unflatten(1, heads), in.q, in.k, in.v, saved.out.unflatten(1, heads), saved.log_sum.contiguous(), rows.offsets_q,
        rows.offsets_k, rows.longest_q, rows.longest_k, 0.0, rows.causal, random, none, shape.scale(), left_of(shape), right_of(shape));
    return {dq, dk, dv};
  };
  return {forward, backward, cuda::join_attended};
}

KernelRows kernel_rows(const PackedBatch& batch) { return {batch.offsets, batch.offsets, batch.max_length, batch.max_length}; }

// Where no row is longer than the window, there is none.
AttentionShape open_shape(const PackedBatch& batch, AttentionShape shape) {
  if (shape.window >= batch.max_length) shape.window = 0;
  return shape;
}

RowKernel kernel_for(const Tensor& qkv, const AttentionShape& shape, AttentionUse use) {
  return fast_kernel(shape, use == AttentionUse::training && shape.window == 0 && cuda::is_cudnn_suited(qkv, shape));
}

// The plain formulas, row by row with all scores in memory: for what the fast kernels do not support (fp32 and odd head sizes on CUDA).
struct PlainRow {
  Tensor q, k, v;  // [kv_heads, group, length, dim]; k and v [kv_heads, 1, keys, dim], of the prompt and the row
  Tensor probs;    // [kv_heads, group, length, keys]
};

Tensor grouped(const Tensor& x, int64_t num_kv_heads) {  // [length, heads, dim] to [kv_heads, group, length, dim]
  return x.unflatten(1, {num_kv_heads, x.size(1) / num_kv_heads}).permute({1, 2, 0, 3});
}
Tensor ungrouped(const Tensor& x) { return x.permute({2, 0, 1, 3}).flatten(1, 2); }

PlainRow plain_row(const HeadTensors& all, const RowSpan& span, const RowSpan& prompt, const AttentionShape& shape) {
  const auto part = [&](const Tensor& x, const RowSpan& of) {
    return grouped(x.narrow(0, of.start, of.length).to(at::kFloat), shape.num_kv_heads);
  };
  const auto keys = [&](const Tensor& x) { return at::cat({part(x, prompt), part(x, span)}, 2); };
  PlainRow row{part(all.q, span), keys(all.k), keys(all.v), {}};
  const auto options = all.q.options().dtype(at::kLong);
  const Tensor ahead = at::arange(prompt.length + span.length, options).unsqueeze(0) -
                       at::arange(prompt.length, prompt.length + span.length, options).unsqueeze(1);  // key minus query
  Tensor hidden = ahead.gt(0);
  if (shape.window > 0) hidden = hidden.logical_or(ahead.le(-shape.window));
  row.probs = at::matmul(row.q, row.k.transpose(-1, -2)).mul_(shape.scale()).masked_fill_(hidden, -INFINITY).softmax(-1);
  return row;
}

Attended plain_attention(const Tensor& qkv, const PackedBatch& batch, const AttentionShape& shape) {
  const HeadTensors all = split_heads(qkv, shape);
  const Tensor out = at::empty({qkv.size(0), shape.num_heads, shape.head_dim}, qkv.options());
  const auto attend = [&](const RowSpan& span, const RowSpan& prompt) {
    const PlainRow row = plain_row(all, span, prompt, shape);
    out.narrow(0, span.start, span.length).copy_(ungrouped(at::matmul(row.probs, row.v)));
  };
  for (const RowFamily& family : row_families(batch)) {
    attend(family.first, {});
    for (const RowSpan& answer : family.answers) attend(answer, family.first);
  }
  return {out.flatten(1), {}, {}};
}

Tensor plain_backward(const Tensor& dout, const Tensor& qkv, const PackedBatch& batch, const AttentionShape& shape) {
  const HeadTensors all = split_heads(qkv, shape);
  const Tensor dqkv = at::empty_like(qkv);
  const HeadTensors gradient = split_heads(dqkv, shape);
  const Tensor dheads = dout.unflatten(1, {shape.num_heads, shape.head_dim});
  const auto put = [](const Tensor& to, const RowSpan& span, const Tensor& from) {
    to.narrow(0, span.start, span.length).copy_(ungrouped(from));
  };
  // Returns the gradients of keys and values, of the prompt and the row.
  const auto attend = [&](const RowSpan& span, const RowSpan& prompt) -> std::pair<Tensor, Tensor> {
    const PlainRow row = plain_row(all, span, prompt, shape);
    const Tensor d = grouped(dheads.narrow(0, span.start, span.length).to(at::kFloat), shape.num_kv_heads);
    const Tensor dprobs = at::matmul(d, row.v.transpose(-1, -2));
    const Tensor dscores = row.probs * (dprobs - (dprobs * row.probs).sum(-1, true)) * shape.scale();
    put(gradient.q, span, at::matmul(dscores, row.k));
    return {at::matmul(dscores.transpose(-1, -2), row.q).sum(1, true), at::matmul(row.probs.transpose(-1, -2), d).sum(1, true)};
  };
  for (const auto& [first, answers] : row_families(batch)) {
    const auto [first_k, first_v] = attend(first, {});
    for (const RowSpan& answer : answers) {
      const auto [dk, dv] = attend(answer, first);
      first_k.add_(dk.narrow(2, 0, first.length));
      first_v.add_(dv.narrow(2, 0, first.length));
      put(gradient.k, answer, dk.narrow(2, first.length, answer.length));
      put(gradient.v, answer, dv.narrow(2, first.length, answer.length));
    }
    put(gradient.k, first, first_k);
    put(gradient.v, first, first_v);
  }
  return dqkv;
}

}  // namespace

// From 200 to 224 channels its backward pass needs more shared memory than RTX cards have; no known model has such heads, so it is not
// used.
bool flash_takes(int64_t head_dim) { return head_dim % 8 == 0 && head_dim <= 256 && (head_dim <= 192 || head_dim > 224); }

double AttentionShape::scale() const { return 1.0 / std::sqrt(static_cast<double>(head_dim)); }

Attended attention(const Tensor& qkv, const PackedBatch& batch, const AttentionShape& shape, AttentionUse use) {
  if (!qkv.is_cuda()) return cpu::attention(qkv, batch, shape);
  if (!flash_can(qkv, shape)) return plain_attention(qkv, batch, shape);
  const AttentionShape open = open_shape(batch, shape);
  if (!batch.shares_prompts()) return kernel_for(qkv, open, use).forward(split_heads(qkv, open), kernel_rows(batch));
  // A shared prompt cannot be seen through a window in one call.
  return open.window == 0 ? shared_attention(qkv, batch, open, kernel_for(qkv, open, use)) : plain_attention(qkv, batch, shape);
}

Tensor attention_backward(const Tensor& dout, const Tensor& qkv, const Attended& saved, const PackedBatch& batch,
                          const AttentionShape& shape) {
  if (!qkv.is_cuda()) return cpu::attention_backward(dout, qkv, saved, batch, shape);
  if (!flash_can(qkv, shape)) return plain_backward(dout, qkv, batch, shape);
  const AttentionShape open = open_shape(batch, shape);
  const RowKernel kernel = kernel_for(qkv, open, AttentionUse::training);
  if (!batch.shares_prompts()) return join_heads(kernel.backward(dout, split_heads(qkv, open), saved, kernel_rows(batch)));
  return open.window == 0 ? shared_attention_backward(dout, qkv, saved, batch, open, kernel) : plain_backward(dout, qkv, batch, shape);
}

}  // namespace kedge
