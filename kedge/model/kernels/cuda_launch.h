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

// Two parts of a softmax: out = out e^(sum - joined) + more e^(more_sum - joined), where joined is the log of both sums' powers together.
struct JoinLaunch {
  Type type;
  void* out;
  const void* more;             // both [rows, heads, dim]; dim must be a multiple of 8
  const float *sum, *more_sum;  // of a row and head: sum[row * sum_row + head * sum_head]
  int64_t sum_row, sum_head, more_row, more_head;
  float* joined;  // [rows, heads]
  int64_t rows;
  int heads, dim;
};
void launch_join(const JoinLaunch& launch, cudaStream_t stream);

}  // namespace kedge::cuda
