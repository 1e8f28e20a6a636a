// A warp takes one head of one row at a time, each lane N neighbouring numbers of it.
#include <cmath>

#include "kedge/model/kernels/cuda_head_norms_launch.h"
#include "kedge/model/kernels/cuda_numbers.cuh"

namespace kedge::cuda {
namespace {

constexpr int kWarps = 8;  // of a block

template <typename T, int N>
__device__ inline void load(const T* from, float (&to)[N]) {
  const auto several = *reinterpret_cast<const Several<T, N>*>(from);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = widen(several.values[i]);
}
template <typename T, int N>
__device__ inline void save(T* to, const float (&from)[N]) {
  Several<T, N> several;
#pragma unroll
  for (int i = 0; i < N; ++i) store(several.values[i], from[i]);
  *reinterpret_cast<Several<T, N>*>(to) = several;
}

template <typename T, int N>
__global__ void head_norms_kernel(const T* qkv, const T* q_weight, const T* k_weight, T* out, float* q_rstd, float* k_rstd, int64_t rows,
                                  int64_t num_q, int64_t num_k, int64_t num_heads, float q_eps, float k_eps) {
  constexpr int kDim = N * 32;
  const int64_t item = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (item >= rows * num_heads) return;
  const int64_t row = item / num_heads, head = item % num_heads;
  float x[N];
  load<T, N>(qkv + item * kDim + lane * N, x);
  if (head < num_q + num_k) {
    const bool is_query = head < num_q;
    float squares = 0, weight[N];
#pragma unroll
    for (int i = 0; i < N; ++i) squares += x[i] * x[i];
    const float inverse = rsqrtf(warp_sum(squares) / static_cast<float>(kDim) + (is_query ? q_eps : k_eps));
    load<T, N>((is_query ? q_weight : k_weight) + lane * N, weight);
#pragma unroll
    for (int i = 0; i < N; ++i) x[i] = x[i] * inverse * weight[i];
    if (lane == 0) (is_query ? q_rstd[row * num_q + head] : k_rstd[row * num_k + head - num_q]) = inverse;
  }
  save<T, N>(out + item * kDim + lane * N, x);
}

// Each warp takes every so many-th head, and sums the weights' gradients of its heads; then the block adds those of its warps in order.
template <typename T, int N>
__global__ void head_norms_backward_kernel(T* dqkv, const T* qkv, const T* q_weight, const T* k_weight, const float* q_rstd,
                                           const float* k_rstd, float* dweights, int64_t rows, int64_t num_q, int64_t num_k,
                                           int64_t num_heads) {
  constexpr int kDim = N * 32;
  __shared__ float sums[kWarps][2][kDim];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t normed = num_q + num_k;
  float of_queries[N], of_keys[N], dq[N] = {}, dk[N] = {};
  load<T, N>(q_weight + lane * N, of_queries);
  load<T, N>(k_weight + lane * N, of_keys);
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kWarps + warp; item < rows * normed;
       item += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t row = item / normed, head = item % normed, at = (row * num_heads + head) * kDim + lane * N;
    const bool is_query = head < num_q;
    const float inverse = is_query ? q_rstd[row * num_q + head] : k_rstd[row * num_k + head - num_q];
    float d[N], x[N], along = 0;
    load<T, N>(dqkv + at, d);
    load<T, N>(qkv + at, x);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      x[i] *= inverse;
      const float part = d[i] * x[i];
      if (is_query)
        dq[i] += part;
      else
        dk[i] += part;
      d[i] *= is_query ? of_queries[i] : of_keys[i];
      along += d[i] * x[i];
    }
    along = warp_sum(along) / static_cast<float>(kDim);
#pragma unroll
    for (int i = 0; i < N; ++i) d[i] = (d[i] - x[i] * along) * inverse;
    save<T, N>(dqkv + at, d);
  }
#pragma unroll
  for (int i = 0; i < N; ++i) {
    sums[warp][0][lane * N + i] = dq[i];
    sums[warp][1][lane * N + i] = dk[i];
  }
  __syncthreads();
  for (int at = static_cast<int>(threadIdx.x); at < 2 * kDim; at += kWarps * 32) {
    float sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += sums[w][at / kDim][at % kDim];
    dweights[static_cast<int64_t>(blockIdx.x) * 2 * kDim + at] = sum;
  }
}

template <int N>
struct PerLane {
  static constexpr int value = N;
};
template <typename F>
void with_dim(int64_t dim, F&& f) {
  if (dim == 32) f(PerLane<1>{});
  if (dim == 64) f(PerLane<2>{});
  if (dim == 128) f(PerLane<4>{});
  if (dim == 256) f(PerLane<8>{});
}

}  // namespace

bool has_head_norms(int64_t dim) { return dim == 32 || dim == 64 || dim == 128 || dim == 256; }

void launch_head_norms(const HeadNormsLaunch& l, cudaStream_t stream) {
  with_type(l.type, [&](auto type) {
    with_dim(l.dim, [&](auto per_lane) {
      using T = decltype(type);
      const auto blocks = static_cast<unsigned>((l.rows * l.num_heads + kWarps - 1) / kWarps);
      head_norms_kernel<T, decltype(per_lane)::value><<<blocks, kWarps * 32, 0, stream>>>(
          static_cast<const T*>(l.qkv), static_cast<const T*>(l.q_weight), static_cast<const T*>(l.k_weight), static_cast<T*>(l.out),
          l.q_rstd, l.k_rstd, l.rows, l.num_q, l.num_k, l.num_heads, l.q_eps, l.k_eps);
    });
  });
}

void launch_head_norms_backward(const HeadNormsBackwardLaunch& l, cudaStream_t stream) {
  with_type(l.type, [&](auto type) {
    with_dim(l.dim, [&](auto per_lane) {
      using T = decltype(type);
      head_norms_backward_kernel<T, decltype(per_lane)::value><<<static_cast<unsigned>(l.num_blocks), kWarps * 32, 0, stream>>>(
          static_cast<T*>(l.dqkv), static_cast<const T*>(l.qkv), static_cast<const T*>(l.q_weight), static_cast<const T*>(l.k_weight),
          l.q_rstd, l.k_rstd, l.dweights, l.rows, l.num_q, l.num_k, l.num_heads);
    });
  });
}

}  // namespace kedge::cuda
