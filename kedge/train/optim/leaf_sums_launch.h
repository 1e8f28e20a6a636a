#pragma once
// The kernel of gradient_norm.h on raw pointers: nvcc compiles no torch headers.
#include <cuda_runtime_api.h>

#include <cstdint>

namespace kedge::cuda {

// sums[i] becomes the sum of squares of values [i * leaf, (i + 1) * leaf), of which there are `size`.
struct LeafSumsLaunch {
  const float* values;
  double* sums;
  int64_t size, leaf;
};
void launch_leaf_sums(const LeafSumsLaunch& launch, cudaStream_t stream);

}  // namespace kedge::cuda
