#include "kedge/model/kernels/head_norms.h"

#include <utility>

#include "kedge/model/kernels/cuda_kernels.h"

namespace kedge {
namespace {

// Columns [from, from + heads * dim) of qkv as rows of one head each; a single head's would be a view with gaps.
Tensor head_rows(const Tensor& qkv, int64_t from, int64_t heads, int64_t dim) {
  return qkv.narrow(1, from, heads * dim).reshape({-1, dim}).contiguous();
}
void put_head_rows(const Tensor& qkv, int64_t from, int64_t heads, int64_t dim, const Tensor& rows) {
  qkv.narrow(1, from, heads * dim).copy_(rows.view({-1, heads * dim}));
}

}  // namespace

HeadNormed norm_heads(const Tensor& qkv, const HeadNorms& norms) {
  if (cuda::has_head_norms(qkv, norms)) return cuda::norm_heads(qkv, norms);
  HeadNormed result{.out = qkv.clone(), .q = {}, .k = {}};
  Normed q = norm(head_rows(qkv, 0, norms.num_q, norms.dim), norms.q);
  Normed k = norm(head_rows(qkv, norms.num_q * norms.dim, norms.num_k, norms.dim), norms.k);
  put_head_rows(result.out, 0, norms.num_q, norms.dim, q.out);
  put_head_rows(result.out, norms.num_q * norms.dim, norms.num_k, norms.dim, k.out);
  q.out.reset(), k.out.reset();
  result.q = std::move(q);
  result.k = std::move(k);
  return result;
}

void norm_heads_backward_(const Tensor& dqkv, const Tensor& qkv, const Normed& q, const Normed& k, const HeadNorms& norms) {
  if (cuda::has_head_norms(qkv, norms)) return cuda::norm_heads_backward_(dqkv, qkv, q, k, norms);
  const auto one = [&](int64_t from, int64_t heads, const Normed& saved, const NormWeights& weights) {
    const Tensor dx = norm_backward(head_rows(dqkv, from, heads, norms.dim), head_rows(qkv, from, heads, norms.dim), saved, weights, {});
    put_head_rows(dqkv, from, heads, norms.dim, dx);
  };
  one(0, norms.num_q, q, norms.q);
  one(norms.num_q * norms.dim, norms.num_k, k, norms.k);
}

}  // namespace kedge
