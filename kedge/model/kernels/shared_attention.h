#pragma once
// Attention of a batch that shares prompts, by a kernel that knows only rows of queries with rows of keys: every row with itself, then the
// answers with their prompts, joined by the sums of their softmaxes. Independent of devices.
#include <functional>

#include "kedge/model/kernels/attention.h"

namespace kedge {

// Row r of the queries, tokens [offsets_q[r], offsets_q[r + 1]), sees row r of the keys: all of it, or up to its own place in it.
struct KernelRows {
  Tensor offsets_q, offsets_k;  // int32 [rows + 1]
  int64_t longest_q = 0, longest_k = 0;
  bool causal = true;
};

struct HeadTensors {
  Tensor q, k, v;  // [tokens, heads, head_dim]
};
[[nodiscard]] HeadTensors split_heads(const Tensor& qkv, const AttentionShape& shape);
// The reverse, in the queries' own memory if they are parts of a matrix that has room for the others beside them.
[[nodiscard]] Tensor join_heads(const HeadTensors& parts);

struct RowKernel {
  // out [tokens, heads * head_dim]; log_sum [heads, tokens], to base e.
  std::function<Attended(const HeadTensors& in, const KernelRows& rows)> forward;
  // The gradients, given an output and sums that may be over more keys than those here. dout and out as in `forward`.
  std::function<HeadTensors(const Tensor& dout, const HeadTensors& in, const Attended& saved, const KernelRows& rows)> backward;
  // Of tokens that saw keys in two parts: makes the first outputs those of all keys, and returns the sums of all.
  std::function<Tensor(const Tensor& out, const Tensor& log_sum, const Tensor& other_out, const Tensor& other_log_sum)> join;
};

// No window: the batch shares prompts, and its rows are no longer than the model's window.
[[nodiscard]] Attended shared_attention(const Tensor& qkv, const PackedBatch& batch, const AttentionShape& shape, const RowKernel& kernel);
[[nodiscard]] Tensor shared_attention_backward(const Tensor& dout, const Tensor& qkv, const Attended& saved, const PackedBatch& batch,
                                               const AttentionShape& shape, const RowKernel& kernel);

}  // namespace kedge
