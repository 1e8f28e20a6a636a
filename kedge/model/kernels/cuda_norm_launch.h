#pragma once
// Norms of rows on raw pointers: nvcc compiles no torch headers.
#include "kedge/model/kernels/cuda_launch.h"

namespace kedge::cuda {

struct NormLaunch {
  Type type;
  const void *x, *weight, *bias;  // bias may be null
  void* out;
  float *mean, *rstd;  // mean null for rms
  int64_t rows, size;
  bool known;  // use the statistics instead of computing them
  float eps;
};
void launch_norm(const NormLaunch& launch, cudaStream_t stream);

struct NormBackwardLaunch {
  Type type;
  const void *dout, *x, *weight, *beside;  // beside may be null
  const float *mean, *rstd;
  void* dx;
  float *dweight, *dbias;  // [num_blocks, size], for add_column_sums; null if nobody asks
  int64_t rows, size;
  int num_blocks;
};
void launch_norm_backward(const NormBackwardLaunch& launch, cudaStream_t stream);

// Blocks that keep a GPU busy with so many rows.
[[nodiscard]] int norm_backward_blocks(int64_t rows, int64_t size);

// out[c] += the sum of a column, always in the same order.
struct ColumnSumsLaunch {
  const float* rows;
  int64_t num_rows, stride, size;
  float* out;
};
void launch_add_column_sums(const ColumnSumsLaunch& launch, cudaStream_t stream);

}  // namespace kedge::cuda
