#pragma once
// The kernels themselves, on raw pointers: nvcc compiles no torch headers.
#include <cuda_runtime_api.h>

#include <cstdint>

namespace kedge::cuda {

enum class Type { f32, bf16 };

struct GateLaunch {
  Type type;
  const void *dout, *gate_up;  // dout null: forward
  void *dgate_up, *out;
  int64_t rows, size;
};
void launch_silu_gate(const GateLaunch& launch, cudaStream_t stream);

struct RotateLaunch {
  Type type;
  void* x;
  const float *cos, *sin;
  int64_t rows, width, num_heads, head_dim, half;
  float direction;
};
void launch_rotate(const RotateLaunch& launch, cudaStream_t stream);

struct LogitLaunch {
  Type type, out_type;
  const void* logits;
  const int64_t* targets;
  float *logprob, *log_sum, *entropy;  // written by the forward; entropy may be null
  const float *dlogprob, *dentropy;    // read by the backward; dentropy may be null
  void* out;
  int64_t rows, size;
  float temperature;  // divides the logits
};
void launch_logit_stats(const LogitLaunch& launch, cudaStream_t stream);
void launch_logit_gradient(const LogitLaunch& launch, cudaStream_t stream);

}  // namespace kedge::cuda
