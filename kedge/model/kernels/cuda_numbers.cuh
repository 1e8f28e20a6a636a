#pragma once
// Numbers of device memory, float or bf16, as the kernels of model/kernels take them: fp32 in registers, several moved together.
#include <cuda_bf16.h>

#include "kedge/model/kernels/cuda_launch.h"

namespace kedge::cuda {

using Bf16 = __nv_bfloat16;

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(Bf16 x) { return __bfloat162float(x); }
__device__ inline void store(float& out, float x) { out = x; }
__device__ inline void store(Bf16& out, float x) { out = __float2bfloat16(x); }

// kWide numbers moved together: 16 bytes of bf16, 32 of fp32.
constexpr int kWide = 8;
template <typename T>
struct alignas(sizeof(T) * kWide > 16 ? 16 : sizeof(T) * kWide) Wide {
  T values[kWide];
};
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

template <typename F>
void with_type(Type type, F&& f) {
  type == Type::f32 ? f(float{}) : f(Bf16{});
}

}  // namespace kedge::cuda
