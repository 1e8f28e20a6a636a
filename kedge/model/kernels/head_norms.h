#pragma once
// Norms of queries and keys, head by head, within rows of [queries, keys, values].
#include "kedge/core/tensor.h"
#include "kedge/model/kernels/ops.h"

namespace kedge {

struct HeadNorms {
  const NormWeights &q, &k;
  int64_t num_q = 0, num_k = 0, dim = 0;  // heads of queries and of keys, and their size
};

// The result is `out`, like qkv; values are copied. `q` and `k` have statistics alone, for each row head by head.
struct HeadNormed {
  Tensor out;
  Normed q, k;
};
[[nodiscard]] HeadNormed norm_heads(const Tensor& qkv, const HeadNorms& norms);
// The gradient of qkv in place of that of the result; those of the weights are added to their buffers.
void norm_heads_backward_(const Tensor& dqkv, const Tensor& qkv, const Normed& q, const Normed& k, const HeadNorms& norms);

}  // namespace kedge
