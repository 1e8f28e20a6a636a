#pragma once
// The kernels of a decoding step on raw pointers: nvcc compiles no torch headers.
#include <cuda_runtime_api.h>

#include <cstdint>

namespace kedge::cuda {

struct HeadCounts {
  int heads, kv_heads, dim;
};

// Normalizes queries and keys if there are weights, rotates them to their positions, and stores keys and values: both [blocks, kv_heads,
// 64, dim].
struct TurnLaunch {
  bool bf16;
  void* qkv;  // [tokens, (heads + 2 kv_heads) * dim]; queries and keys are overwritten
  const int32_t *positions, *slots;
  const float *cos, *sin;       // [positions, half]; null: no rotation
  int half;                     // of the rotated channels
  const void *q_norm, *k_norm;  // [dim], or null
  float eps;
  void *keys, *values;
  int64_t tokens;
  HeadCounts count;
};
void launch_turn_and_store(const TurnLaunch& launch, cudaStream_t stream);

struct PagedLaunch {
  bool bf16;
  const void* qkv;
  const int32_t* positions;
  const int32_t* tables;  // [tokens, width]
  int width;
  const void *keys, *values;
  void* out;  // [tokens, heads * dim]
  int64_t tokens;
  HeadCounts count;
  int window;  // 0: none
  float scale;
  int num_splits;
  float *part, *part_log_sum;  // [tokens, heads, splits, dim] and without dim; null if num_splits is 1
  bool turns;                  // does what `turn` says first, in the same kernel: of the fast one, for the same tokens. Leaves qkv as it is
  TurnLaunch turn;
};
void launch_paged_attention(const PagedLaunch& launch, cudaStream_t stream);
// Whether the fast kernel supports it; only that one splits keys and turns.
[[nodiscard]] bool is_fast_paged_attention(bool bf16, const HeadCounts& count);

}  // namespace kedge::cuda
