#pragma once
// AdamW's kernel on raw pointers: nvcc compiles no torch headers.
#include <cuda_runtime_api.h>

#include <cstdint>

namespace kedge::cuda {

struct AdamWLaunch {
  float* weight;
  const float* gradient;
  void *first, *second;  // fp32, or bf16 if `narrow`
  bool narrow;
  void* published;  // bf16, or null
  int64_t size;
  float grad_scale, beta1, one_minus_beta1, beta2, one_minus_beta2, keep, rate, second_scale, eps;
};
void launch_adamw(const AdamWLaunch& launch, cudaStream_t stream);

}  // namespace kedge::cuda
