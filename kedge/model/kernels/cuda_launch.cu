#include <cmath>

#include "kedge/model/kernels/cuda_launch.h"
#include "kedge/model/kernels/cuda_numbers.cuh"

namespace kedge::cuda {
namespace {

constexpr int kThreads = 256;

__device__ inline float sigmoid(float x) { return 1.0F / (1.0F + __expf(-x)); }

// Blocks of threads: x is a row, y a part of its columns, of which a thread takes W.
template <typename T, int W>
__global__ void gate_kernel(const T* gate_up, T* out, int64_t size) {
  const int64_t row = blockIdx.x, c = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * W, index = row * size + c;
  if (c >= size) return;
  const T *gate = gate_up + 2 * row * size + c, *up = gate + size;
  if constexpr (W == kWide) {
    float g[W], u[W];
    load_wide(gate, g);
    load_wide(up, u);
#pragma unroll
    for (int i = 0; i < W; ++i) g[i] = g[i] * sigmoid(g[i]) * u[i];
    store_wide(out + index, g);
  } else {
    store(out[index], widen(*gate) * sigmoid(widen(*gate)) * widen(*up));
  }
}

template <typename T, int W>
__global__ void gate_backward_kernel(const T* dout, const T* gate_up, T* dgate_up, T* out, int64_t size) {
  const int64_t row = blockIdx.x, c = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * W;
  const int64_t index = row * size + c, at = 2 * row * size + c;
  if (c >= size) return;
  float g[W], u[W], d[W];
  if constexpr (W == kWide) {
    load_wide(gate_up + at, g);
    load_wide(gate_up + at + size, u);
    load_wide(dout + index, d);
  } else {
    g[0] = widen(gate_up[at]), u[0] = widen(gate_up[at + size]), d[0] = widen(dout[index]);
  }
  float active[W], dup[W], dgate[W];
#pragma unroll
  for (int i = 0; i < W; ++i) {
    const float s = sigmoid(g[i]), silu = g[i] * s;
    active[i] = silu * u[i];
    dup[i] = d[i] * silu;
    dgate[i] = d[i] * u[i] * (s + silu * (1.0F - s));
  }
  if constexpr (W == kWide) {
    store_wide(out + index, active);
    store_wide(dgate_up + at, dgate);
    store_wide(dgate_up + at + size, dup);
  } else {
    store(out[index], active[0]), store(dgate_up[at], dgate[0]), store(dgate_up[at + size], dup[0]);
  }
}

// A thread turns W neighbouring channels and those half a rotation behind them.
template <typename T, int W>
__global__ void rotate_kernel(T* x, const float* cos, const float* sin, int64_t rows, int64_t width, int64_t num_heads, int64_t head_dim,
                              int64_t half, float direction) {
  const auto parts = static_cast<uint32_t>(half / W), heads = static_cast<uint32_t>(num_heads);
  const uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= rows * heads * parts) return;
  const uint32_t i = index % parts * W, head = index / parts % heads;
  const int64_t row = index / parts / heads;
  T* at = x + row * width + head * head_dim + i;
  float a[W], b[W], c[W], s[W];
  if constexpr (W == kWide) {
    load_wide(at, a), load_wide(at + half, b);
    load_wide(cos + row * half + i, c), load_wide(sin + row * half + i, s);
  } else {
    a[0] = widen(at[0]), b[0] = widen(at[half]), c[0] = cos[row * half + i], s[0] = sin[row * half + i];
  }
#pragma unroll
  for (int k = 0; k < W; ++k) {
    const float turn = s[k] * direction, before = a[k];
    a[k] = before * c[k] - b[k] * turn;
    b[k] = b[k] * c[k] + before * turn;
  }
  if constexpr (W == kWide) {
    store_wide(at, a), store_wide(at + half, b);
  } else {
    store(at[0], a[0]), store(at[half], b[0]);
  }
}

// A thread takes kWide channels of a head.
template <typename T>
__global__ void join_kernel(const JoinLaunch l) {
  const int64_t parts = l.dim / kWide, index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= l.rows * l.heads * parts) return;
  const int64_t part = index % parts, place = index / parts, head = place % l.heads, row = place / l.heads;
  const float sum = l.sum[row * l.sum_row + head * l.sum_head], more_sum = l.more_sum[row * l.more_row + head * l.more_head];
  const float most = fmaxf(sum, more_sum), joined = most + log1pf(expf(fminf(sum, more_sum) - most));
  const float weight = expf(sum - joined), more_weight = expf(more_sum - joined);
  float out[kWide], more[kWide];
  load_wide(static_cast<const T*>(l.out) + index * kWide, out);
  load_wide(static_cast<const T*>(l.more) + index * kWide, more);
#pragma unroll
  for (int i = 0; i < kWide; ++i) out[i] = out[i] * weight + more[i] * more_weight;
  store_wide(static_cast<T*>(l.out) + index * kWide, out);
  if (part == 0) l.joined[place] = joined;
}

// A running softmax: the largest logit, the sum of e^(x - most), and that of e^(x - most) (x - most).
struct Running {
  float most, sum, moment;
};
__device__ inline Running join(Running a, Running b) {
  const float most = fmaxf(a.most, b.most);
  const float shift_a = a.most - most, shift_b = b.most - most;  // never -inf - -inf: starts are finite
  const float wa = __expf(shift_a), wb = __expf(shift_b);
  return {most, a.sum * wa + b.sum * wb, (a.moment + a.sum * shift_a) * wa + (b.moment + b.sum * shift_b) * wb};
}

// A logit as softmax takes it. Without a temperature nothing is divided.
template <bool Divided>
__device__ inline float scaled(float logit, float temperature) {
  return Divided ? logit / temperature : logit;
}

template <typename T, bool Divided>
__global__ void logit_stats_kernel(const T* logits, const int64_t* targets, float* logprob, float* log_sum, float* entropy, int64_t size,
                                   float temperature) {
  const int64_t row = blockIdx.x;
  const T* from = logits + row * size;
  Running mine{-1e30F, 0.0F, 0.0F};
  for_row(from, size, [&](int64_t, float logit) {
    const float x = scaled<Divided>(logit, temperature);
    if (x > mine.most) {
      const float shift = mine.most - x, weight = __expf(shift);
      mine = {x, mine.sum * weight + 1.0F, (mine.moment + mine.sum * shift) * weight};
    } else {
      const float shift = x - mine.most, weight = __expf(shift);
      mine.sum += weight;
      mine.moment += weight * shift;
    }
  });
  for (int offset = 16; offset > 0; offset /= 2) {
    const Running other{__shfl_xor_sync(0xFFFFFFFFU, mine.most, offset), __shfl_xor_sync(0xFFFFFFFFU, mine.sum, offset),
                        __shfl_xor_sync(0xFFFFFFFFU, mine.moment, offset)};
    mine = join(mine, other);
  }
  __shared__ Running warps[32];
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) mine = join(mine, warps[warp]);
  const float log_of_sum = logf(mine.sum);
  log_sum[row] = mine.most + log_of_sum;
  logprob[row] = scaled<Divided>(widen(from[targets[row]]), temperature) - (mine.most + log_of_sum);
  if (entropy != nullptr) entropy[row] = log_of_sum - mine.moment / mine.sum;
}

template <typename T, typename Out, bool Divided>
__global__ void logit_gradient_kernel(const T* logits, const int64_t* targets, const float* log_sum, const float* entropy,
                                      const float* dlogprob, const float* dentropy, Out* out, int64_t size, float temperature) {
  const int64_t row = blockIdx.x, target = targets[row];
  const float total = log_sum[row], d = scaled<Divided>(dlogprob[row], temperature);
  const float e = dentropy == nullptr ? 0.0F : scaled<Divided>(dentropy[row], temperature);
  const float h = entropy == nullptr ? 0.0F : entropy[row];
  const auto gradient = [&](int64_t c, float x) {
    const float logp = scaled<Divided>(x, temperature) - total;
    return (c == target ? d : 0.0F) - __expf(logp) * (d + e * (logp + h));
  };
  const T* from = logits + row * size;
  Out* to = out + row * size;
  if (size % kWide == 0) {
    for (int64_t c = static_cast<int64_t>(threadIdx.x) * kWide; c < size; c += static_cast<int64_t>(blockDim.x) * kWide) {
      float x[kWide];
      load_wide(from + c, x);
#pragma unroll
      for (int i = 0; i < kWide; ++i) x[i] = gradient(c + i, x[i]);
      store_wide(to + c, x);
    }
  } else {
    for (int64_t c = threadIdx.x; c < size; c += blockDim.x) store(to[c], gradient(c, widen(from[c])));
  }
}

template <typename F>
void with_division(float temperature, F&& f) {
  temperature == 1.0F ? f(std::false_type{}) : f(std::true_type{});
}

unsigned blocks_for(int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

}  // namespace

void launch_silu_gate(const GateLaunch& l, cudaStream_t stream) {
  with_type(l.type, [&](auto type) {
    using T = decltype(type);
    const auto *dout = static_cast<const T*>(l.dout), *gate_up = static_cast<const T*>(l.gate_up);
    auto *dgate_up = static_cast<T*>(l.dgate_up), *out = static_cast<T*>(l.out);
    const bool wide = l.size % kWide == 0;
    const dim3 blocks(static_cast<unsigned>(l.rows), blocks_for(wide ? l.size / kWide : l.size));
    if (dout == nullptr) {
      wide ? gate_kernel<T, kWide><<<blocks, kThreads, 0, stream>>>(gate_up, out, l.size)
           : gate_kernel<T, 1><<<blocks, kThreads, 0, stream>>>(gate_up, out, l.size);
    } else {
      wide ? gate_backward_kernel<T, kWide><<<blocks, kThreads, 0, stream>>>(dout, gate_up, dgate_up, out, l.size)
           : gate_backward_kernel<T, 1><<<blocks, kThreads, 0, stream>>>(dout, gate_up, dgate_up, out, l.size);
    }
  });
}

void launch_rotate(const RotateLaunch& l, cudaStream_t stream) {
  with_type(l.type, [&](auto type) {
    using T = decltype(type);
    const bool wide = l.half % kWide == 0 && l.head_dim % kWide == 0 && l.width % kWide == 0;
    const int64_t count = l.rows * l.num_heads * l.half;
    const auto kernel = wide ? rotate_kernel<T, kWide> : rotate_kernel<T, 1>;
    kernel<<<blocks_for(wide ? count / kWide : count), kThreads, 0, stream>>>(static_cast<T*>(l.x), l.cos, l.sin, l.rows, l.width,
                                                                              l.num_heads, l.head_dim, l.half, l.direction);
  });
}

void launch_join(const JoinLaunch& l, cudaStream_t stream) {
  with_type(l.type,
            [&](auto type) { join_kernel<decltype(type)><<<blocks_for(l.rows * l.heads * (l.dim / kWide)), kThreads, 0, stream>>>(l); });
}

void launch_logit_stats(const LogitLaunch& l, cudaStream_t stream) {
  with_type(l.type, [&](auto type) {
    with_division(l.temperature, [&](auto divided) {
      using T = decltype(type);
      logit_stats_kernel<T, decltype(divided)::value><<<static_cast<unsigned>(l.rows), 512, 0, stream>>>(
          static_cast<const T*>(l.logits), l.targets, l.logprob, l.log_sum, l.entropy, l.size, l.temperature);
    });
  });
}

void launch_logit_gradient(const LogitLaunch& l, cudaStream_t stream) {
  with_type(l.type, [&](auto type) {
    with_type(l.out_type, [&](auto out_type) {
      with_division(l.temperature, [&](auto divided) {
        using T = decltype(type);
        using Out = decltype(out_type);
        logit_gradient_kernel<T, Out, decltype(divided)::value>
            <<<static_cast<unsigned>(l.rows), 512, 0, stream>>>(static_cast<const T*>(l.logits), l.targets, l.log_sum, l.entropy,
                                                                l.dlogprob, l.dentropy, static_cast<Out*>(l.out), l.size, l.temperature);
      });
    });
  });
}

}  // namespace kedge::cuda
