#pragma once
// The kernel of core/bit_hash.h on raw pointers: nvcc compiles no torch headers.
#include <cuda_runtime_api.h>

#include <cstdint>

namespace kedge::cuda {

// Adds to *sum what `rows` rows of `width` words add: word w of row r has place first + r * step + w.
struct BitSumLaunch {
  const uint32_t* words;
  int64_t rows, width, first, step;
  unsigned long long* sum;
};
void launch_bit_sum(const BitSumLaunch& launch, cudaStream_t stream);

}  // namespace kedge::cuda
