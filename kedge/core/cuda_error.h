#pragma once
// Errors of the CUDA runtime. For sources that are compiled only with CUDA.
#include <cuda_runtime_api.h>

#include "kedge/core/error.h"

namespace kedge {

inline void must(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw Error(str(call, ": ", cudaGetErrorString(status)));
}

}  // namespace kedge
