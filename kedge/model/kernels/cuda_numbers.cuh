#pragma once
// Numbers of device memory, float or bf16, as kernels take them: fp32 in registers, several moved together.
#include <cuda_bf16.h>

#include "kedge/model/kernels/cuda_launch.h"

namespace kedge::cuda {

using Bf16 = __nv_bfloat16;

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(Bf16 x) { return __bfloat162float(x); }
__device__ inline void store(float& out, float x) { out = x; }
__device__ inline void store(Bf16& out, float x) { out = __float2bfloat16(x); }

// The warp's sum, known to every thread.
__device__ inline float warp_sum(float sum) {
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, offset);
  return sum;
}

// N neighbouring numbers, moved together in pieces of up to 16 bytes; three of them one by one.
template <typename T, int N>
struct alignas(N == 3               ? sizeof(T)
               : sizeof(T) * N > 16 ? 16
                                    : sizeof(T) * N) Several {
  T values[N];
};

constexpr int kWide = 8;  // 16 bytes of bf16, 32 of fp32
template <typename T>
using Wide = Several<T, kWide>;
template <typename T>
__device__ inline void load_wide(const T* from, float* to) {
  const Wide<T> wide = *reinterpret_cast<const Wide<T>*>(from);
#pragma unroll
  for (int i = 0; i < kWide; ++i) to[i] = widen(wide.values[i]);
}
template <typename T>
__device__ inline void store_wide(T* to, const float* from) {
  Wide<T> wide;
#pragma unroll
  for (int i = 0; i < kWide; ++i) store(wide.values[i], from[i]);
  *reinterpret_cast<Wide<T>*>(to) = wide;
}

// Runs work(column, values of x there) over a row, kWide columns at a time if the size allows it.
template <typename T, typename F>
__device__ inline void for_row(const T* row, int64_t size, F&& work) {
  if (size % kWide == 0) {
    for (int64_t c = static_cast<int64_t>(threadIdx.x) * kWide; c < size; c += static_cast<int64_t>(blockDim.x) * kWide) {
      float x[kWide];
      load_wide(row + c, x);
#pragma unroll
      for (int i = 0; i < kWide; ++i) work(c + i, x[i]);
    }
  } else {
    for (int64_t c = threadIdx.x; c < size; c += blockDim.x) work(c, widen(row[c]));
  }
}

template <typename F>
void with_type(Type type, F&& f) {
  type == Type::f32 ? f(float{}) : f(Bf16{});
}

}  // namespace kedge::cuda
