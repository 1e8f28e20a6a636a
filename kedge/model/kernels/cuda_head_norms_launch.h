#pragma once
// The kernels of head_norms.h themselves, on raw pointers.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "kedge/model/kernels/cuda_launch.h"

namespace kedge::cuda {

// Norms (rms) of the first num_q + num_k heads of every row, which has num_heads: queries, keys, values.
struct HeadNormsLaunch {
  Type type;
  const void *qkv, *q_weight, *k_weight;
  void* out;  // like qkv: the other heads are copied
  float *q_rstd, *k_rstd;
  int64_t rows, num_q, num_k, num_heads, dim;
  float q_eps, k_eps;
};
struct HeadNormsBackwardLaunch {
  Type type;
  void* dqkv;  // in: of what the norms gave; out: of what they took
  const void *qkv, *q_weight, *k_weight;
  const float *q_rstd, *k_rstd;
  float* dweights;  // [num_blocks, 2, dim]: of queries, of keys
  int64_t rows, num_q, num_k, num_heads, dim;
  int num_blocks;
};
// Of heads of this size.
[[nodiscard]] bool has_head_norms(int64_t dim);
void launch_head_norms(const HeadNormsLaunch& launch, cudaStream_t stream);
void launch_head_norms_backward(const HeadNormsBackwardLaunch& launch, cudaStream_t stream);

}  // namespace kedge::cuda
