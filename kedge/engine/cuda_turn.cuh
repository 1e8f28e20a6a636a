#pragma once
// What a token's heads go through before attention: their norm, their rotation, and the place in the memory of keys and values.
#include "kedge/engine/cuda_decode_launch.h"
#include "kedge/model/kernels/cuda_numbers.cuh"

namespace kedge::cuda {

constexpr int kBlock = 64;  // tokens in a block of the memory
constexpr int kWarp = 32;
constexpr unsigned kAll = 0xFFFFFFFFU;
constexpr float kLog2E = 1.44269504F;
constexpr float kNothingYet = -1e30F;

constexpr int kMostDim = 256;

// A lane's numbers of a head: Parts neighbouring channels, as the training pass has them, so that norms sum in the same order. Heads that
// are not a multiple of 32 wide leave some lanes without a part.
template <int Parts, typename F>
__device__ inline void for_channels(int dim, int lane, const F& work) {
#pragma unroll
  for (int k = 0; k < Parts; ++k)
    if (const int d = lane * Parts + k; d < dim) work(k, d);
}
// The same numbers of memory, in one access if all lanes have them.
template <int Parts, typename T>
__device__ inline void load_channels(const T* from, int dim, int lane, T (&to)[Parts]) {
  if (dim == Parts * kWarp) {
    const auto all = reinterpret_cast<const Several<T, Parts>*>(from)[lane];
#pragma unroll
    for (int k = 0; k < Parts; ++k) to[k] = all.values[k];
  } else {
    for_channels<Parts>(dim, lane, [&](int k, int d) { to[k] = from[d]; });
  }
}
template <int Parts, typename T>
__device__ inline void store_channels(T* to, int dim, int lane, const T (&from)[Parts]) {
  if (dim == Parts * kWarp) {
    Several<T, Parts> all;
#pragma unroll
    for (int k = 0; k < Parts; ++k) all.values[k] = from[k];
    reinterpret_cast<Several<T, Parts>*>(to)[lane] = all;
  } else {
    for_channels<Parts>(dim, lane, [&](int k, int d) { to[d] = from[k]; });
  }
}

// A head as it comes from memory, and its norm's weights if there are any.
template <typename T, int Parts>
struct RawHead {
  T x[Parts], weight[Parts];

  __device__ void load(const T* from, const void* norm, int dim, int lane) {
    load_channels<Parts>(from, dim, lane, x);
    if (norm != nullptr) load_channels<Parts>(static_cast<const T*>(norm), dim, lane, weight);
  }
};

// Of a lane's channels at a position.
template <int Parts>
struct Angles {
  float cos[Parts], sin[Parts];

  __device__ void load(const TurnLaunch& l, int position, int lane) {
    if (l.cos == nullptr) return;
    const int64_t first = static_cast<int64_t>(position) * l.half;
    for_channels<Parts>(2 * l.half, lane, [&](int k, int d) {
      const int64_t at = first + (d < l.half ? d : d - l.half);
      cos[k] = l.cos[at], sin[k] = l.sin[at];
    });
  }
};

// One head of a token, by one warp: normalized if it has a norm, and rotated; `out` has the lane's channels. `row` is room for a head in
// shared memory.
template <typename T, int Parts>
__device__ inline void turn_head(const TurnLaunch& l, int dim, const RawHead<T, Parts>& head, bool has_norm, const Angles<Parts>& angles,
                                 float* row, int lane, T (&out)[Parts]) {
  float inverse = 0, values[Parts];
  if (has_norm) {
    float square = 0;
    for_channels<Parts>(dim, lane, [&](int k, int) { square += widen(head.x[k]) * widen(head.x[k]); });
    inverse = rsqrtf(warp_sum(square) / static_cast<float>(dim) + l.eps);
  }
#pragma unroll
  for (int k = 0; k < Parts; ++k) {
    T rounded = head.x[k];
    if (has_norm) store(rounded, widen(head.x[k]) * inverse * widen(head.weight[k]));  // as the norm of the training pass leaves it
    values[k] = widen(rounded);
  }
  if (l.cos != nullptr) {
    store_channels<Parts>(row, dim, lane, values);
    __syncwarp();
    for_channels<Parts>(2 * l.half, lane, [&](int k, int d) {
      const float other = row[d < l.half ? d + l.half : d - l.half];
      values[k] = d < l.half ? values[k] * angles.cos[k] - other * angles.sin[k] : values[k] * angles.cos[k] + other * angles.sin[k];
    });
    __syncwarp();  // the row may be used again
  }
#pragma unroll
  for (int k = 0; k < Parts; ++k) store(out[k], values[k]);
}

// Where a token's key or value of a kv head is stored in `memory`.
template <typename T>
__device__ inline T* place_of(const TurnLaunch& l, void* memory, int64_t slot, int kv_head) {
  return static_cast<T*>(memory) + ((slot / kBlock * l.count.kv_heads + kv_head) * kBlock + slot % kBlock) * l.count.dim;
}

}  // namespace kedge::cuda
