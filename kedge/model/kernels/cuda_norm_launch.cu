#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kedge/model/kernels/cuda_norm_launch.h"
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

// The statistics of a block's row, which it keeps for the backward unless they are known. for_values(work) calls work(value) for all values
// that the thread has of the row.
template <typename F>
__device__ void norm_statistics(const NormLaunch& l, int64_t row, const F& for_values, float& centre, float& inverse) {
  if (l.known) {
    centre = l.mean == nullptr ? 0.0F : l.mean[row], inverse = l.rstd[row];
    return;
  }
  centre = 0;
  if (l.mean != nullptr) {
    Sums<1> total{};
    for_values([&](float value) { total.values[0] += value; });
    centre = block_sum(total).values[0] / static_cast<float>(l.size);
  }
  Sums<1> square{};
  for_values([&](float value) { square.values[0] += (value - centre) * (value - centre); });
  inverse = rsqrtf(block_sum(square).values[0] / static_cast<float>(l.size) + l.eps);
  if (threadIdx.x == 0) {
    l.rstd[row] = inverse;
    if (l.mean != nullptr) l.mean[row] = centre;
  }
}

// Of any size; rows of usual sizes have the kernel below.
template <typename T>
__global__ void norm_kernel(const NormLaunch l) {
  const int64_t row = blockIdx.x, size = l.size;
  const T *from = static_cast<const T*>(l.x) + row * size, *weight = static_cast<const T*>(l.weight), *bias = static_cast<const T*>(l.bias);
  float centre, inverse;
  const auto for_values = [&](const auto& work) { for_row(from, size, [&](int64_t, float value) { work(value); }); };
  norm_statistics(l, row, for_values, centre, inverse);
  T* to = static_cast<T*>(l.out) + row * size;
  for (int64_t c = threadIdx.x; c < size; c += blockDim.x)
    store(to[c], (widen(from[c]) - centre) * inverse * widen(weight[c]) + (bias == nullptr ? 0.0F : widen(bias[c])));
}

// Rows that a block's registers hold, Chunks times kWide numbers a thread, are read once. Sums are in the order of the kernel above.
template <typename T, int Chunks>
__global__ void wide_norm_kernel(const NormLaunch l) {
  const int64_t row = blockIdx.x;
  const auto column = [](int k) { return (static_cast<int64_t>(k) * blockDim.x + threadIdx.x) * kWide; };
  float x[Chunks][kWide], scale[Chunks][kWide], shift[Chunks][kWide] = {};
#pragma unroll
  for (int k = 0; k < Chunks; ++k) {
    if (column(k) >= l.size) continue;
    load_wide(static_cast<const T*>(l.x) + row * l.size + column(k), x[k]);
    load_wide(static_cast<const T*>(l.weight) + column(k), scale[k]);
    if (l.bias != nullptr) load_wide(static_cast<const T*>(l.bias) + column(k), shift[k]);
  }
  const auto for_values = [&](const auto& work) {
#pragma unroll
    for (int k = 0; k < Chunks; ++k) {
      if (column(k) >= l.size) continue;
#pragma unroll
      for (int i = 0; i < kWide; ++i) work(x[k][i]);
    }
  };
  float centre, inverse;
  norm_statistics(l, row, for_values, centre, inverse);
#pragma unroll
  for (int k = 0; k < Chunks; ++k) {
    if (column(k) >= l.size) continue;
#pragma unroll
    for (int i = 0; i < kWide; ++i) x[k][i] = (x[k][i] - centre) * inverse * scale[k][i] + shift[k][i];
    store_wide(static_cast<T*>(l.out) + row * l.size + column(k), x[k]);
  }
}

// A block takes every num_blocks-th row and sums the weights' gradients of its rows, each thread its own columns. Of any size; rows of
// usual sizes have the kernel below.
template <typename T>
__global__ void norm_backward_kernel(const NormBackwardLaunch l) {
  float *dw = l.dweight == nullptr ? nullptr : l.dweight + blockIdx.x * l.size,
        *db = l.dbias == nullptr ? nullptr : l.dbias + blockIdx.x * l.size;
  const T* weight = static_cast<const T*>(l.weight);
  const auto size = static_cast<float>(l.size);
  for (int64_t c = threadIdx.x; c < l.size; c += blockDim.x) {
    if (dw != nullptr) dw[c] = 0;
    if (db != nullptr) db[c] = 0;
  }
  for (int64_t row = blockIdx.x; row < l.rows; row += gridDim.x) {
    const T *d = static_cast<const T*>(l.dout) + row * l.size, *in = static_cast<const T*>(l.x) + row * l.size;
    const T* add = l.beside == nullptr ? nullptr : static_cast<const T*>(l.beside) + row * l.size;
    const float centre = l.mean == nullptr ? 0.0F : l.mean[row], inverse = l.rstd[row];
    Sums<2> sums{};
    for (int64_t c = threadIdx.x; c < l.size; c += blockDim.x) {
      const float hat = (widen(in[c]) - centre) * inverse, g = widen(d[c]), weighted = g * widen(weight[c]);
      sums.values[0] += weighted * hat;
      sums.values[1] += weighted;
      if (dw != nullptr) dw[c] += g * hat;
      if (db != nullptr) db[c] += g;
    }
    sums = block_sum(sums);
    const float along = sums.values[0] / size, level = l.mean == nullptr ? 0.0F : sums.values[1] / size;
    for (int64_t c = threadIdx.x; c < l.size; c += blockDim.x) {
      const float hat = (widen(in[c]) - centre) * inverse;
      const float value = (widen(d[c]) * widen(weight[c]) - level - hat * along) * inverse;
      store(static_cast<T*>(l.dx)[row * l.size + c], value + (add == nullptr ? 0.0F : widen(add[c])));
    }
  }
}

// Rows that a block's registers hold, Chunks times kWide numbers a thread: the next row is on its way while this one's sums are made.
template <typename T, int Chunks>
struct RowParts {
  Wide<T> dout[Chunks], x[Chunks], beside[Chunks];
  float mean, rstd;

  __device__ void load(const NormBackwardLaunch& l, int64_t row) {
    mean = l.mean == nullptr ? 0.0F : l.mean[row], rstd = l.rstd[row];
#pragma unroll
    for (int k = 0; k < Chunks; ++k) {
      const int64_t c = column(k);
      if (c >= l.size) continue;
      const int64_t at = row * l.size + c;
      dout[k] = *reinterpret_cast<const Wide<T>*>(static_cast<const T*>(l.dout) + at);
      x[k] = *reinterpret_cast<const Wide<T>*>(static_cast<const T*>(l.x) + at);
      if (l.beside != nullptr) beside[k] = *reinterpret_cast<const Wide<T>*>(static_cast<const T*>(l.beside) + at);
    }
  }
  __device__ static int64_t column(int k) { return (static_cast<int64_t>(k) * blockDim.x + threadIdx.x) * kWide; }
};

template <typename T, int Chunks, bool HasBias>
__global__ void __launch_bounds__(kThreads, Chunks <= 2 ? 2 : 1) wide_norm_backward_kernel(const NormBackwardLaunch l) {
  __shared__ float warps[2][2][kThreads / 32];  // of two rows in turn, so that one barrier a row is enough
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  const auto size = static_cast<float>(l.size);
  Wide<T> weight[Chunks];
  float dw[Chunks][kWide] = {}, db[Chunks][kWide] = {};
#pragma unroll
  for (int k = 0; k < Chunks; ++k)
    if (RowParts<T, Chunks>::column(k) < l.size)
      weight[k] = *reinterpret_cast<const Wide<T>*>(static_cast<const T*>(l.weight) + RowParts<T, Chunks>::column(k));
  RowParts<T, Chunks> now, next;
  now.load(l, blockIdx.x);
  int turn = 0;
  for (int64_t row = blockIdx.x; row < l.rows; row += gridDim.x, turn ^= 1) {
    if (row + gridDim.x < l.rows) next.load(l, row + gridDim.x);
    float along = 0, level = 0;
#pragma unroll
    for (int k = 0; k < Chunks; ++k) {
      if (now.column(k) >= l.size) continue;
#pragma unroll
      for (int i = 0; i < kWide; ++i) {
        const float hat = (widen(now.x[k].values[i]) - now.mean) * now.rstd, g = widen(now.dout[k].values[i]);
        const float weighted = g * widen(weight[k].values[i]);
        along += weighted * hat;
        level += weighted;
        dw[k][i] += g * hat;
        if constexpr (HasBias) db[k][i] += g;
      }
    }
    for (int offset = 16; offset > 0; offset /= 2) {
      along += __shfl_xor_sync(0xFFFFFFFFU, along, offset);
      level += __shfl_xor_sync(0xFFFFFFFFU, level, offset);
    }
    if (lane == 0) warps[turn][0][warp] = along, warps[turn][1][warp] = level;
    __syncthreads();
    along = level = 0;
    for (int w = 0; w < num_warps; ++w) along += warps[turn][0][w], level += warps[turn][1][w];
    along /= size, level = l.mean == nullptr ? 0.0F : level / size;
#pragma unroll
    for (int k = 0; k < Chunks; ++k) {
      if (now.column(k) >= l.size) continue;
      float value[kWide];
#pragma unroll
      for (int i = 0; i < kWide; ++i) {
        const float hat = (widen(now.x[k].values[i]) - now.mean) * now.rstd;
        value[i] = (widen(now.dout[k].values[i]) * widen(weight[k].values[i]) - level - hat * along) * now.rstd +
                   (l.beside == nullptr ? 0.0F : widen(now.beside[k].values[i]));
      }
      store_wide(static_cast<T*>(l.dx) + row * l.size + now.column(k), value);
    }
    now = next;
  }
#pragma unroll
  for (int k = 0; k < Chunks; ++k) {
    if (now.column(k) >= l.size) continue;
    const int64_t at = blockIdx.x * l.size + now.column(k);
    if (l.dweight != nullptr) store_wide(l.dweight + at, dw[k]);
    if constexpr (HasBias) store_wide(l.dbias + at, db[k]);
  }
}

// A thread sums every kSumRows-th row of one column, then the first of each column those of the others.
constexpr int kSumColumns = 32, kSumRows = 32;
__global__ void add_column_sums_kernel(const ColumnSumsLaunch l) {
  __shared__ float sums[kSumRows][kSumColumns];
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kSumColumns + threadIdx.x;
  float sum = 0;
  if (c < l.size)
    for (int64_t row = threadIdx.y; row < l.num_rows; row += kSumRows) sum += l.rows[row * l.stride + c];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= l.size) return;
  for (int r = 1; r < kSumRows; ++r) sum += sums[r][threadIdx.x];
  l.out[c] += sum;
}

// Rows of a size that the registers of a block hold.
constexpr int kMostChunks = 4;
bool is_wide(int64_t size) { return size % kWide == 0 && size <= static_cast<int64_t>(kThreads) * kWide * kMostChunks; }
int64_t threads_for(int64_t size) { return std::min<int64_t>(kThreads, (size / kWide + 31) / 32 * 32); }

}  // namespace

void launch_norm(const NormLaunch& l, cudaStream_t stream) {
  with_type(l.type, [&](auto type) {
    using T = decltype(type);
    const int64_t chunks = (l.size + kThreads * kWide - 1) / (kThreads * kWide);
    const auto kernel = !is_wide(l.size) ? norm_kernel<T>
                        : chunks == 1    ? wide_norm_kernel<T, 1>
                        : chunks == 2    ? wide_norm_kernel<T, 2>
                                         : wide_norm_kernel<T, kMostChunks>;
    const int64_t threads = is_wide(l.size) ? threads_for(l.size) : kThreads;
    kernel<<<static_cast<unsigned>(l.rows), static_cast<unsigned>(threads), 0, stream>>>(l);
  });
}

int norm_backward_blocks(int64_t rows, int64_t size) {
  const int64_t most = is_wide(size) ? 2 * 132 * kThreads / threads_for(size) : 2 * 132;
  return static_cast<int>(std::min(rows, most));
}

void launch_norm_backward(const NormBackwardLaunch& l, cudaStream_t stream) {
  with_type(l.type, [&](auto type) {
    using T = decltype(type);
    if (is_wide(l.size)) {
      const int chunks = static_cast<int>((l.size + kThreads * kWide - 1) / (kThreads * kWide));
      const auto choose = [&](auto has_bias) {
        constexpr bool kHasBias = decltype(has_bias)::value;
        return chunks == 1   ? wide_norm_backward_kernel<T, 1, kHasBias>
               : chunks == 2 ? wide_norm_backward_kernel<T, 2, kHasBias>
                             : wide_norm_backward_kernel<T, kMostChunks, kHasBias>;
      };
      const auto kernel = l.dbias == nullptr ? choose(std::false_type{}) : choose(std::true_type{});
      kernel<<<static_cast<unsigned>(l.num_blocks), static_cast<unsigned>(threads_for(l.size)), 0, stream>>>(l);
      return;
    }
    norm_backward_kernel<T><<<static_cast<unsigned>(l.num_blocks), kThreads, 0, stream>>>(l);
  });
}

void launch_add_column_sums(const ColumnSumsLaunch& l, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((l.size + kSumColumns - 1) / kSumColumns);
  add_column_sums_kernel<<<blocks, dim3(kSumColumns, kSumRows), 0, stream>>>(l);
}

}  // namespace kedge::cuda
