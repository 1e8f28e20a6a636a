#include <cmath>

#include "kedge/model/kernels/cuda_launch.h"
#include "kedge/model/kernels/cuda_numbers.cuh"

namespace kedge::cuda {
namespace {

constexpr int kThreads = 256;

template <int N>
struct Sums {
  float values[N];
};

// The block's sums, known to every thread.
template <int N>
__device__ Sums<N> block_sum(Sums<N> sums) {
  __shared__ float warps[N][32];
#pragma unroll
  for (int n = 0; n < N; ++n)
    for (int offset = 16; offset > 0; offset /= 2) sums.values[n] += __shfl_xor_sync(0xFFFFFFFFU, sums.values[n], offset);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  __syncthreads();
  if (lane == 0)
    for (int n = 0; n < N; ++n) warps[n][warp] = sums.values[n];
  __syncthreads();
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  for (int n = 0; n < N; ++n) {
    float sum = 0;
    for (int w = 0; w < num_warps; ++w) sum += warps[n][w];
    sums.values[n] = sum;
  }
  return sums;
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

template <typename T>
__global__ void norm_kernel(const T* x, const T* weight, const T* bias, T* out, float* mean, float* rstd, int64_t size, bool known,
                            float eps) {
  const int64_t row = blockIdx.x;
  const T* from = x + row * size;
  float centre = 0, inverse = 0;
  if (known) {
    centre = mean == nullptr ? 0.0F : mean[row], inverse = rstd[row];
  } else {
    if (mean != nullptr) {
      Sums<1> total{};
      for_row(from, size, [&](int64_t, float value) { total.values[0] += value; });
      centre = block_sum(total).values[0] / static_cast<float>(size);
    }
    Sums<1> square{};
    for_row(from, size, [&](int64_t, float value) { square.values[0] += (value - centre) * (value - centre); });
    inverse = rsqrtf(block_sum(square).values[0] / static_cast<float>(size) + eps);
    if (threadIdx.x == 0) {
      rstd[row] = inverse;
      if (mean != nullptr) mean[row] = centre;
    }
  }
  T* to = out + row * size;
  if (size % kWide == 0) {
    for (int64_t c = static_cast<int64_t>(threadIdx.x) * kWide; c < size; c += static_cast<int64_t>(blockDim.x) * kWide) {
      float value[kWide], scale[kWide], shift[kWide] = {};
      load_wide(from + c, value);
      load_wide(weight + c, scale);
      if (bias != nullptr) load_wide(bias + c, shift);
#pragma unroll
      for (int i = 0; i < kWide; ++i) value[i] = (value[i] - centre) * inverse * scale[i] + shift[i];
      store_wide(to + c, value);
    }
  } else {
    for (int64_t c = threadIdx.x; c < size; c += blockDim.x)
      store(to[c], (widen(from[c]) - centre) * inverse * widen(weight[c]) + (bias == nullptr ? 0.0F : widen(bias[c])));
  }
}

// A block takes every num_blocks-th row and sums the weights' gradients of its rows, each thread its own columns: in shared memory, or, of
// rows that are too wide for it, where the sums go. The bits are the same.
template <typename T, bool InShared>
__global__ void norm_backward_kernel(const T* dout, const T* x, const T* weight, const T* beside, const float* mean, const float* rstd,
                                     T* dx, float* dweight, float* dbias, int64_t rows, int64_t size) {
  extern __shared__ float shared[];
  float* dw = InShared ? shared : dweight + blockIdx.x * size;
  float* db = dbias == nullptr ? nullptr : InShared ? shared + size : dbias + blockIdx.x * size;
  const int64_t stride = size % kWide == 0 ? kWide : 1;
  const int64_t begin = static_cast<int64_t>(threadIdx.x) * stride, step = static_cast<int64_t>(blockDim.x) * stride;
  for (int64_t c = begin; c < size; c += step)
    for (int64_t i = 0; i < stride; ++i) {
      dw[c + i] = 0;
      if (db != nullptr) db[c + i] = 0;
    }
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *d = dout + row * size, *in = x + row * size, *add = beside == nullptr ? nullptr : beside + row * size;
    const float centre = mean == nullptr ? 0.0F : mean[row], inverse = rstd[row];
    Sums<2> sums{};
    for (int64_t c = begin; c < size; c += step)
      for (int64_t i = 0; i < stride; ++i) {
        const float hat = (widen(in[c + i]) - centre) * inverse, g = widen(d[c + i]);
        const float weighted = g * widen(weight[c + i]);
        sums.values[0] += weighted * hat;
        sums.values[1] += weighted;
        dw[c + i] += g * hat;
        if (db != nullptr) db[c + i] += g;
      }
    sums = block_sum(sums);
    const float along = sums.values[0] / static_cast<float>(size);
    const float level = mean == nullptr ? 0.0F : sums.values[1] / static_cast<float>(size);
    for (int64_t c = begin; c < size; c += step)
      for (int64_t i = 0; i < stride; ++i) {
        const float hat = (widen(in[c + i]) - centre) * inverse;
        const float value = (widen(d[c + i]) * widen(weight[c + i]) - level - hat * along) * inverse;
        store(dx[row * size + c + i], value + (add == nullptr ? 0.0F : widen(add[c + i])));
      }
  }
  for (int64_t c = begin; InShared && c < size; c += step)
    for (int64_t i = 0; i < stride; ++i) {
      dweight[blockIdx.x * size + c + i] = dw[c + i];
      if (db != nullptr) dbias[blockIdx.x * size + c + i] = db[c + i];
    }
}

__device__ inline float sigmoid(float x) { return 1.0F / (1.0F + __expf(-x)); }

template <typename T, int W>
__global__ void gate_kernel(const T* gate_up, T* out, int64_t rows, int64_t size) {
  const int64_t index = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * W;
  if (index >= rows * size) return;
  const int64_t row = index / size, c = index % size;
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
__global__ void gate_backward_kernel(const T* dout, const T* gate_up, T* dgate_up, T* out, int64_t rows, int64_t size) {
  const int64_t index = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * W;
  if (index >= rows * size) return;
  const int64_t row = index / size, c = index % size, at = 2 * row * size + c;
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

template <typename T>
__global__ void rotate_kernel(T* x, const float* cos, const float* sin, int64_t rows, int64_t width, int64_t num_heads, int64_t head_dim,
                              int64_t half, float direction) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= rows * num_heads * half) return;
  const int64_t i = index % half, head = index / half % num_heads, row = index / half / num_heads;
  T* at = x + row * width + head * head_dim + i;
  const float a = widen(at[0]), b = widen(at[half]);
  const float c = cos[row * half + i], s = sin[row * half + i] * direction;
  store(at[0], a * c - b * s);
  store(at[half], b * c + a * s);
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

// Shared memory of a block by default, and this device's maximum: 163 KiB on an A100, 227 on an H100, 99 on
// RTX cards. Both less what block_sum takes.
constexpr size_t kSumShared = 1U << 10U, kPlainShared = (48U << 10U) - kSumShared;
size_t most_shared_bytes() {
  int device = 0, most = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return static_cast<size_t>(most) - kSumShared;
}

unsigned blocks_for(int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

}  // namespace

void launch_norm(const NormLaunch& l, cudaStream_t stream) {
  with_type(l.type, [&](auto type) {
    using T = decltype(type);
    norm_kernel<T><<<static_cast<unsigned>(l.rows), kThreads, 0, stream>>>(static_cast<const T*>(l.x), static_cast<const T*>(l.weight),
                                                                           static_cast<const T*>(l.bias), static_cast<T*>(l.out), l.mean,
                                                                           l.rstd, l.size, l.known, l.eps);
  });
}

void launch_norm_backward(const NormBackwardLaunch& l, cudaStream_t stream) {
  with_type(l.type, [&](auto type) {
    using T = decltype(type);
    const auto shared = static_cast<size_t>(l.size) * sizeof(float) * (l.dbias == nullptr ? 1 : 2);
    const bool fits = shared <= kPlainShared || shared <= most_shared_bytes();
    const auto kernel = fits ? norm_backward_kernel<T, true> : norm_backward_kernel<T, false>;
    if (fits && shared > kPlainShared) cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
    kernel<<<static_cast<unsigned>(l.num_blocks), kThreads, fits ? shared : 0, stream>>>(
        static_cast<const T*>(l.dout), static_cast<const T*>(l.x), static_cast<const T*>(l.weight), static_cast<const T*>(l.beside), l.mean,
        l.rstd, static_cast<T*>(l.dx), l.dweight, l.dbias, l.rows, l.size);
  });
}

void launch_silu_gate(const GateLaunch& l, cudaStream_t stream) {
  with_type(l.type, [&](auto type) {
    using T = decltype(type);
    const auto *dout = static_cast<const T*>(l.dout), *gate_up = static_cast<const T*>(l.gate_up);
    auto *dgate_up = static_cast<T*>(l.dgate_up), *out = static_cast<T*>(l.out);
    const int64_t count = l.rows * l.size;
    const bool wide = l.size % kWide == 0;
    const unsigned blocks = blocks_for(wide ? count / kWide : count);
    if (dout == nullptr) {
      wide ? gate_kernel<T, kWide><<<blocks, kThreads, 0, stream>>>(gate_up, out, l.rows, l.size)
           : gate_kernel<T, 1><<<blocks, kThreads, 0, stream>>>(gate_up, out, l.rows, l.size);
    } else {
      wide ? gate_backward_kernel<T, kWide><<<blocks, kThreads, 0, stream>>>(dout, gate_up, dgate_up, out, l.rows, l.size)
           : gate_backward_kernel<T, 1><<<blocks, kThreads, 0, stream>>>(dout, gate_up, dgate_up, out, l.rows, l.size);
    }
  });
}

void launch_rotate(const RotateLaunch& l, cudaStream_t stream) {
  with_type(l.type, [&](auto type) {
    using T = decltype(type);
    rotate_kernel<T><<<blocks_for(l.rows * l.num_heads * l.half), kThreads, 0, stream>>>(
        static_cast<T*>(l.x), l.cos, l.sin, l.rows, l.width, l.num_heads, l.head_dim, l.half, l.direction);
  });
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
