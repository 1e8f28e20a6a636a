#include <cuda_bf16.h>

#include "kedge/train/optim/adamw_launch.h"

namespace kedge::cuda {
namespace {

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline void store(float& out, float x) { out = x; }
__device__ inline void store(__nv_bfloat16& out, float x) { out = __float2bfloat16(x); }

template <typename Moment>
__global__ void adamw_kernel(AdamWLaunch l) {
  auto *first = static_cast<Moment*>(l.first), *second = static_cast<Moment*>(l.second);
  auto* published = static_cast<__nv_bfloat16*>(l.published);
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < l.size; i += stride) {
    const float g = l.gradient[i] * l.grad_scale;
    const float m = l.beta1 * widen(first[i]) + l.one_minus_beta1 * g;
    const float v = l.beta2 * widen(second[i]) + l.one_minus_beta2 * g * g;
    store(first[i], m);
    store(second[i], v);
    const float weight = l.weight[i] * l.keep - l.rate * m / (sqrtf(v) * l.second_scale + l.eps);
    l.weight[i] = weight;
    if (published != nullptr) published[i] = __float2bfloat16(weight);
  }
}

}  // namespace

void launch_adamw(const AdamWLaunch& launch, cudaStream_t stream) {
  constexpr int kThreads = 256, kBlocks = 132 * 16;
  launch.narrow ? adamw_kernel<__nv_bfloat16><<<kBlocks, kThreads, 0, stream>>>(launch)
                : adamw_kernel<float><<<kBlocks, kThreads, 0, stream>>>(launch);
}

}  // namespace kedge::cuda
