#pragma once
// The GPU's side of model/ops: one kernel each, on the current stream. A build without CUDA has stubs.
#include "kedge/model/kernels/head_norms.h"
#include "kedge/model/kernels/op_kernels.h"

namespace kedge::cuda {

extern const OpKernels kernels;

void logit_gradient(const Tensor& logits, const Tensor& targets, const LogitStats& stats, const Tensor& dlogprob, const Tensor& dentropy,
                    const Tensor& out);

// Of tokens that attended to keys in two parts: `out` becomes the whole output, [tokens, heads * dim]; returns the sums of all keys,
// [heads, tokens] like those of the parts. Heads must be a multiple of 8 wide.
[[nodiscard]] Tensor join_attended(const Tensor& out, const Tensor& sum, const Tensor& more, const Tensor& more_sum);

// There are kernels for these heads, and qkv is on a GPU.
[[nodiscard]] bool has_head_norms(const Tensor& qkv, const HeadNorms& norms);
[[nodiscard]] HeadNormed norm_heads(const Tensor& qkv, const HeadNorms& norms);
void norm_heads_backward_(const Tensor& dqkv, const Tensor& qkv, const Normed& q, const Normed& k, const HeadNorms& norms);

}  // namespace kedge::cuda
