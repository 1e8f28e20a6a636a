#include "kedge/model/kernels/shared_attention.h"

#include <algorithm>

#include <ATen/ops/cat.h>

#include "kedge/core/error.h"

namespace kedge {
namespace {

KernelRows own_rows(const PackedBatch& batch) {
  const int64_t longest = *std::max_element(batch.lengths.begin(), batch.lengths.end());
  return {.offsets_q = batch.offsets, .offsets_k = batch.offsets, .longest_q = longest, .longest_k = longest};
}

// All answers to a prompt are one row of queries: each of their tokens sees the whole prompt. Prompts come first in a batch.
KernelRows prompt_rows(const PackedBatch& batch) {
  const SharedPrompts& shared = batch.shared;
  return {.offsets_q = shared.offsets,
          .offsets_k = batch.offsets.narrow(0, 0, shared.offsets.size(0)),
          .longest_q = shared.longest_answers,
          .longest_k = shared.longest_prompt,
          .causal = false};
}

// The answers' queries with the prompts' keys and values.
HeadTensors prompt_heads(const HeadTensors& all, const SharedPrompts& shared) {
  return {all.q.narrow(0, shared.prompt_tokens, shared.answer_tokens), all.k.narrow(0, 0, shared.prompt_tokens),
          all.v.narrow(0, 0, shared.prompt_tokens)};
}

Tensor of_answers(const Tensor& x, int64_t dim, const SharedPrompts& shared) {
  return x.narrow(dim, shared.prompt_tokens, shared.answer_tokens);
}

}  // namespace

HeadTensors split_heads(const Tensor& qkv, const AttentionShape& shape) {
  const int64_t dim = shape.head_dim, q = shape.num_heads * dim, kv = shape.num_kv_heads * dim;
  const auto part = [&](int64_t from, int64_t heads) { return qkv.narrow(1, from, heads * dim).unflatten(1, {heads, dim}); };
  return {part(0, shape.num_heads), part(q, shape.num_kv_heads), part(q + kv, shape.num_kv_heads)};
}

Tensor join_heads(const HeadTensors& parts) {
  const Tensor q = parts.q.flatten(1), k = parts.k.flatten(1), v = parts.v.flatten(1);
  const int64_t width = q.size(1) + k.size(1) + v.size(1);
  const bool has_room =
      q.stride(0) == width && q.storage_offset() == 0 && static_cast<int64_t>(q.storage().nbytes()) >= q.size(0) * width * q.element_size();
  if (!has_room) return at::cat({q, k, v}, 1);
  Tensor all = q.as_strided({q.size(0), width}, {width, 1});
  all.narrow(1, q.size(1), k.size(1)).copy_(k);
  all.narrow(1, q.size(1) + k.size(1), v.size(1)).copy_(v);
  return all;
}

Attended shared_attention(const Tensor& qkv, const PackedBatch& batch, const AttentionShape& shape, const RowKernel& kernel) {
  const SharedPrompts& shared = batch.shared;
  const HeadTensors all = split_heads(qkv, shape);
  Attended own = kernel.forward(all, own_rows(batch));
  const Attended prompt = kernel.forward(prompt_heads(all, shared), prompt_rows(batch));
  ensure(own.log_sum.size(1) == qkv.size(0) && prompt.log_sum.size(1) == shared.answer_tokens, "a kernel whose sums are not by token");
  const Tensor own_sum = of_answers(own.log_sum, 1, shared);
  own_sum.copy_(kernel.join(of_answers(own.out, 0, shared), own_sum, prompt.out, prompt.log_sum));
  return own;
}

Tensor shared_attention_backward(const Tensor& dout, const Tensor& qkv, const Attended& saved, const PackedBatch& batch,
                                 const AttentionShape& shape, const RowKernel& kernel) {
  const SharedPrompts& shared = batch.shared;
  const HeadTensors all = split_heads(qkv, shape);
  const HeadTensors own = kernel.backward(dout, all, saved, own_rows(batch));
  const Attended answers{of_answers(saved.out, 0, shared), of_answers(saved.log_sum, 1, shared), saved.random};
  const HeadTensors prompt = kernel.backward(of_answers(dout, 0, shared), prompt_heads(all, shared), answers, prompt_rows(batch));
  of_answers(own.q, 0, shared).add_(prompt.q);
  own.k.narrow(0, 0, shared.prompt_tokens).add_(prompt.k);
  own.v.narrow(0, 0, shared.prompt_tokens).add_(prompt.v);
  return join_heads(own);
}

}  // namespace kedge
