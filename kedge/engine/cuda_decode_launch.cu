#include <cuda_bf16.h>

#include "kedge/engine/cuda_decode_launch.h"

namespace kedge::cuda {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kBlock = 64;  // tokens in a block of the memory
constexpr int kWarp = 32;
constexpr unsigned kAll = 0xFFFFFFFFU;
constexpr float kLog2E = 1.44269504F;
constexpr float kNothingYet = -1e30F;

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(Bf16 x) { return __bfloat162float(x); }
__device__ inline void store(float& out, float x) { out = x; }
__device__ inline void store(Bf16& out, float x) { out = __float2bfloat16(x); }

__device__ inline float warp_sum(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(kAll, x, offset);
  return x;
}
__device__ inline float warp_max(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x = fmaxf(x, __shfl_xor_sync(kAll, x, offset));
  return x;
}

constexpr int kTurnWarps = 8, kMostDim = 256;

// A warp takes one head of one token.
template <typename T>
__global__ void turn_and_store_kernel(const TurnLaunch l) {
  __shared__ float shared[kTurnWarps][kMostDim];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int dim = l.count.dim, total = l.count.heads + 2 * l.count.kv_heads;
  const int64_t task = static_cast<int64_t>(blockIdx.x) * kTurnWarps + warp;
  if (task >= l.tokens * total) return;
  const int64_t token = task / total;
  const int head = static_cast<int>(task % total);
  T* x = static_cast<T*>(l.qkv) + task * dim;
  const int64_t block = l.slots[token] / kBlock, offset = l.slots[token] % kBlock;
  const int kv_head = head - l.count.heads;
  if (kv_head >= l.count.kv_heads) {
    T* to = static_cast<T*>(l.values) + (block * l.count.kv_heads + kv_head - l.count.kv_heads) * dim * kBlock + offset;
    for (int d = lane; d < dim; d += kWarp) to[d * kBlock] = x[d];
    return;
  }
  float* row = shared[warp];
  for (int d = lane; d < dim; d += kWarp) row[d] = widen(x[d]);
  const T* weight = static_cast<const T*>(kv_head < 0 ? l.q_norm : l.k_norm);
  if (weight != nullptr) {
    float square = 0;
    for (int d = lane; d < dim; d += kWarp) square += row[d] * row[d];
    const float inverse = rsqrtf(warp_sum(square) / static_cast<float>(dim) + l.eps);
    for (int d = lane; d < dim; d += kWarp) {
      T rounded;  // as the norm of the training pass leaves it
      store(rounded, row[d] * inverse * widen(weight[d]));
      row[d] = widen(rounded);
    }
  }
  __syncwarp();
  T* key = kv_head < 0 ? nullptr : static_cast<T*>(l.keys) + ((block * l.count.kv_heads + kv_head) * kBlock + offset) * dim;
  const int turned = l.cos == nullptr ? 0 : 2 * l.half;
  const int64_t angles = static_cast<int64_t>(l.positions[token]) * l.half;
  for (int d = lane; d < dim; d += kWarp) {
    float value = row[d];
    if (d < turned) {
      const int i = d < l.half ? d : d - l.half;
      const float cos = l.cos[angles + i], sin = l.sin[angles + i];
      value = d < l.half ? value * cos - row[d + l.half] * sin : value * cos + row[i] * sin;
    }
    store(x[d], value);
    if (key != nullptr) store(key[d], value);
  }
}

__device__ inline void multiply(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ inline uint32_t pack(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&both);
}

constexpr int kPagedWarps = 4, kChunk = 32;

struct Quad {
  uint32_t word[4];
};
__device__ inline Quad load_quad(const Bf16* from) {
  const uint4 loaded = *reinterpret_cast<const uint4*>(from);
  return {loaded.x, loaded.y, loaded.z, loaded.w};
}

// All query heads of a kv head (at most 16) of one token over a part of its keys. Every warp takes each fourth chunk of 32 keys with tensor
// cores, straight from the memory: a thread loads 16 bytes, and since a sum may run over channels (or keys) in any order, it calls them the
// ones that the instruction wants from it. For S = Q K^T thread (g, t) = (lane / 4, lane % 4) holds, of channels 32 c + 8 t + 4 s + {0..3},
// step s; of keys, tile j is 8 (n / 2) + 2 j + n % 2 for n in 0..7. Then its scores are those of keys 8 t + 2 j + {0, 1}: just the eight
// keys whose values it loads for O = P V.
struct Lane {
  int warp, g, t;
};
__device__ inline Lane this_lane() {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  return {static_cast<int>(threadIdx.x) / kWarp, lane / 4, lane % 4};
}

// What a query sees: keys [first, length).
struct Sight {
  int first, length;

  [[nodiscard]] __device__ bool whole(int chunk) const { return chunk * kChunk >= first && (chunk + 1) * kChunk <= length; }
  [[nodiscard]] __device__ bool sees(int key) const { return key >= first && key < length; }
};

template <int Dim>
struct Queries {
  Quad low[Dim / 32], high[Dim / 32];  // heads g and g + 8

  __device__ void load(const Bf16* heads, int group, const Lane& lane) {
#pragma unroll
    for (int c = 0; c < Dim / 32; ++c) {
      const Quad none{};
      low[c] = lane.g < group ? load_quad(heads + lane.g * Dim + c * 32 + lane.t * 8) : none;
      high[c] = lane.g + 8 < group ? load_quad(heads + (lane.g + 8) * Dim + c * 32 + lane.t * 8) : none;
    }
  }
};

// A chunk's keys and values. Everything is asked for before anything is waited for.
template <int Dim>
struct Chunk {
  Quad key[4][Dim / 32], value[Dim / 8];

  __device__ void load(const Bf16* keys, const Bf16* values, const Lane& lane) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int c = 0; c < Dim / 32; ++c) key[j][c] = load_quad(keys + (8 * (lane.g / 2) + 2 * j + lane.g % 2) * Dim + c * 32 + lane.t * 8);
#pragma unroll
    for (int e = 0; e < Dim / 8; ++e) value[e] = load_quad(values + (e * 8 + lane.g) * kBlock + lane.t * 8);
  }
};

// The softmax so far of heads g (numbers 0 and 1 of each four) and g + 8 (2 and 3), and the values mixed by it.
template <int Dim>
struct Mixed {
  float out[Dim / 8][4] = {};
  float most[2] = {kNothingYet, kNothingYet}, sum[2] = {};

  // Turns a chunk's scores into weights.
  __device__ void fold(float (&score)[4][4], int chunk, const Sight& sight, float scale, int t) {
    float now[2] = {most[0], most[1]};
    const bool whole = sight.whole(chunk);
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        score[j][i] = whole || sight.sees(chunk * kChunk + 8 * t + 2 * j + i % 2) ? score[j][i] * scale : kNothingYet;
        now[i / 2] = fmaxf(now[i / 2], score[j][i]);
      }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      now[r] = fmaxf(now[r], __shfl_xor_sync(kAll, now[r], 1));
      now[r] = fmaxf(now[r], __shfl_xor_sync(kAll, now[r], 2));
      const float kept = exp2f(most[r] - now[r]);
      most[r] = now[r];
      sum[r] *= kept;
#pragma unroll
      for (int e = 0; e < Dim / 8; ++e) out[e][2 * r] *= kept, out[e][2 * r + 1] *= kept;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        score[j][i] = exp2f(score[j][i] - most[i / 2]);
        sum[i / 2] += score[j][i];
      }
  }

  __device__ void mix(const float (&weight)[4][4], const Chunk<Dim>& loaded, int chunk, const Sight& sight, int t) {
    uint32_t mask[4] = {kAll, kAll, kAll, kAll};
    if (!sight.whole(chunk))  // what lies behind the sequence's end may be anything, even no number
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = chunk * kChunk + 8 * t + 2 * i;
        mask[i] = (key < sight.length ? 0xFFFFU : 0U) | (key + 1 < sight.length ? 0xFFFF0000U : 0U);
      }
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      const float(&first)[4] = weight[2 * s], (&second)[4] = weight[2 * s + 1];
      const uint32_t a0 = pack(first[0], first[1]), a1 = pack(first[2], first[3]);
      const uint32_t a2 = pack(second[0], second[1]), a3 = pack(second[2], second[3]);
#pragma unroll
      for (int e = 0; e < Dim / 8; ++e)
        multiply(out[e], a0, a1, a2, a3, loaded.value[e].word[2 * s] & mask[2 * s], loaded.value[e].word[2 * s + 1] & mask[2 * s + 1]);
    }
  }
};

template <int Dim>
struct SharedParts {
  float out[kPagedWarps][16][Dim];
  float most[kPagedWarps][16], sum[kPagedWarps][16];

  __device__ void put(Mixed<Dim>& mixed, const Lane& lane) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = lane.g + 8 * r;
      mixed.sum[r] += __shfl_xor_sync(kAll, mixed.sum[r], 1);
      mixed.sum[r] += __shfl_xor_sync(kAll, mixed.sum[r], 2);
      if (lane.t == 0) most[lane.warp][row] = mixed.most[r], sum[lane.warp][row] = mixed.sum[r];
#pragma unroll
      for (int e = 0; e < Dim / 8; ++e)
#pragma unroll
        for (int i = 0; i < 2; ++i) out[lane.warp][row][e * 8 + 2 * lane.t + i] = mixed.out[e][2 * r + i];
    }
  }
};

template <int Dim>
__global__ void __launch_bounds__(kPagedWarps* kWarp, Dim == 64 ? 3 : 2) paged_attention_kernel(const PagedLaunch l) {
  __shared__ SharedParts<Dim> shared;
  const int64_t token = blockIdx.x;
  const int kv_head = static_cast<int>(blockIdx.y), split = static_cast<int>(blockIdx.z), group = l.count.heads / l.count.kv_heads;
  const Lane lane = this_lane();
  const int length = l.positions[token] + 1;
  const Sight sight{l.window > 0 ? max(0, length - l.window) : 0, length};
  const int first_chunk = sight.first / kChunk, num_chunks = (length + kChunk - 1) / kChunk - first_chunk;
  const int share = (num_chunks + l.num_splits - 1) / l.num_splits;
  const int begin = first_chunk + split * share, end = min(first_chunk + num_chunks, begin + share);

  Queries<Dim> queries;
  queries.load(static_cast<const Bf16*>(l.qkv) + (token * (l.count.heads + 2 * l.count.kv_heads) + kv_head * group) * Dim, group, lane);
  Mixed<Dim> mixed;
  for (int chunk = begin + lane.warp; chunk < end; chunk += kPagedWarps) {
    const int32_t block = l.tables[token * l.width + chunk / 2];
    const int64_t base = (static_cast<int64_t>(block) * l.count.kv_heads + kv_head) * kBlock * Dim;
    Chunk<Dim> loaded;
    loaded.load(static_cast<const Bf16*>(l.keys) + base + (chunk % 2) * kChunk * Dim,
                static_cast<const Bf16*>(l.values) + base + (chunk % 2) * kChunk, lane);
    float score[4][4] = {};
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int c = 0; c < Dim / 32; ++c) {
        const uint32_t *low = queries.low[c].word, *high = queries.high[c].word, *key = loaded.key[j][c].word;
        multiply(score[j], low[0], high[0], low[1], high[1], key[0], key[1]);
        multiply(score[j], low[2], high[2], low[3], high[3], key[2], key[3]);
      }
    mixed.fold(score, chunk, sight, l.scale * kLog2E, lane.t);
    mixed.mix(score, loaded, chunk, sight, lane.t);
  }
  shared.put(mixed, lane);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < group * Dim; i += kPagedWarps * kWarp) {
    const int row = i / Dim, d = i % Dim;
    float most = kNothingYet, sum = 0, value = 0;
#pragma unroll
    for (int w = 0; w < kPagedWarps; ++w) most = fmaxf(most, shared.most[w][row]);
#pragma unroll
    for (int w = 0; w < kPagedWarps; ++w) {
      const float kept = exp2f(shared.most[w][row] - most);
      sum += shared.sum[w][row] * kept;
      value += shared.out[w][row][d] * kept;
    }
    const int64_t head = token * l.count.heads + kv_head * group + row;
    const float result = sum == 0 ? 0.0F : value / sum;  // what is no number stays none
    if (l.num_splits == 1) {
      static_cast<Bf16*>(l.out)[head * Dim + d] = __float2bfloat16(result);
    } else {
      l.part[(head * l.num_splits + split) * Dim + d] = result;
      if (d == 0) l.part_log_sum[head * l.num_splits + split] = sum == 0 ? kNothingYet : most + log2f(sum);
    }
  }
}

// The parts of one head of one token together.
__global__ void join_parts_kernel(const PagedLaunch l) {
  const int64_t head = blockIdx.x;
  const float* log_sum = l.part_log_sum + head * l.num_splits;
  float most = kNothingYet, total = 0;
  for (int s = 0; s < l.num_splits; ++s) most = fmaxf(most, log_sum[s]);
  for (int s = 0; s < l.num_splits; ++s) total += exp2f(log_sum[s] - most);
  for (int d = static_cast<int>(threadIdx.x); d < l.count.dim; d += static_cast<int>(blockDim.x)) {
    float value = 0;
    for (int s = 0; s < l.num_splits; ++s) value += exp2f(log_sum[s] - most) * l.part[(head * l.num_splits + s) * l.count.dim + d];
    static_cast<Bf16*>(l.out)[head * l.count.dim + d] = __float2bfloat16(value / total);
  }
}

constexpr int kPlainWarps = 4;

// Any head size and type: a warp takes one query head of one token.
template <typename T>
__global__ void plain_paged_kernel(const PagedLaunch l) {
  __shared__ float shared_query[kPlainWarps][kMostDim], shared_weight[kPlainWarps][kBlock];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp, dim = l.count.dim;
  const int64_t task = static_cast<int64_t>(blockIdx.x) * kPlainWarps + warp;
  if (task >= l.tokens * l.count.heads) return;
  const int64_t token = task / l.count.heads;
  const int head = static_cast<int>(task % l.count.heads), kv_head = head / (l.count.heads / l.count.kv_heads);
  const T* query = static_cast<const T*>(l.qkv) + (token * (l.count.heads + 2 * l.count.kv_heads) + head) * dim;
  float *q = shared_query[warp], *weight = shared_weight[warp];
  for (int d = lane; d < dim; d += kWarp) q[d] = widen(query[d]) * l.scale * kLog2E;
  __syncwarp();
  const int length = l.positions[token] + 1, first = l.window > 0 ? max(0, length - l.window) : 0;
  float most = kNothingYet, sum = 0, out[kMostDim / kWarp] = {};
  for (int block = first / kBlock; block * kBlock < length; ++block) {
    const int64_t base = (static_cast<int64_t>(l.tables[token * l.width + block]) * l.count.kv_heads + kv_head) * kBlock * dim;
    const T *keys = static_cast<const T*>(l.keys) + base, *values = static_cast<const T*>(l.values) + base;
    const int from = max(0, first - block * kBlock), to = min(kBlock, length - block * kBlock);
    float score[2], now = most;
    for (int half = 0; half < 2; ++half) {
      const int j = lane + half * kWarp;
      score[half] = kNothingYet;
      if (j >= from && j < to) {
        score[half] = 0;
        for (int d = 0; d < dim; ++d) score[half] += q[d] * widen(keys[j * dim + d]);
      }
      now = fmaxf(now, score[half]);
    }
    now = warp_max(now);
    const float kept = exp2f(most - now);
    most = now;
    float total = 0;
    for (int half = 0; half < 2; ++half) {
      const float power = exp2f(score[half] - now);
      weight[lane + half * kWarp] = power;
      total += power;
    }
    sum = sum * kept + warp_sum(total);
    __syncwarp();
    for (int i = 0; i * kWarp + lane < dim; ++i) {
      const T* channel = values + (i * kWarp + lane) * kBlock;
      float mixed = out[i] * kept;
      for (int j = from; j < to; ++j) mixed += weight[j] * widen(channel[j]);
      out[i] = mixed;
    }
    __syncwarp();
  }
  T* to = static_cast<T*>(l.out) + task * dim;
  for (int i = 0; i * kWarp + lane < dim; ++i) store(to[i * kWarp + lane], out[i] / sum);
}

unsigned groups_of(int64_t tasks, int each) { return static_cast<unsigned>((tasks + each - 1) / each); }

}  // namespace

void launch_turn_and_store(const TurnLaunch& l, cudaStream_t stream) {
  const unsigned groups = groups_of(l.tokens * (l.count.heads + 2 * l.count.kv_heads), kTurnWarps);
  l.bf16 ? turn_and_store_kernel<Bf16><<<groups, kTurnWarps * kWarp, 0, stream>>>(l)
         : turn_and_store_kernel<float><<<groups, kTurnWarps * kWarp, 0, stream>>>(l);
}

bool is_fast_paged_attention(bool bf16, const HeadCounts& count) {
  return bf16 && (count.dim == 64 || count.dim == 96 || count.dim == 128) && count.heads / count.kv_heads <= 16;
}

void launch_paged_attention(const PagedLaunch& l, cudaStream_t stream) {
  if (!is_fast_paged_attention(l.bf16, l.count)) {
    const unsigned groups = groups_of(l.tokens * l.count.heads, kPlainWarps);
    l.bf16 ? plain_paged_kernel<Bf16><<<groups, kPlainWarps * kWarp, 0, stream>>>(l)
           : plain_paged_kernel<float><<<groups, kPlainWarps * kWarp, 0, stream>>>(l);
    return;
  }
  const dim3 grid(static_cast<unsigned>(l.tokens), static_cast<unsigned>(l.count.kv_heads), static_cast<unsigned>(l.num_splits));
  const unsigned threads = kPagedWarps * kWarp;
  if (l.count.dim == 64) paged_attention_kernel<64><<<grid, threads, 0, stream>>>(l);
  if (l.count.dim == 96) paged_attention_kernel<96><<<grid, threads, 0, stream>>>(l);
  if (l.count.dim == 128) paged_attention_kernel<128><<<grid, threads, 0, stream>>>(l);
  if (l.num_splits > 1) join_parts_kernel<<<static_cast<unsigned>(l.tokens * l.count.heads), 64, 0, stream>>>(l);
}

}  // namespace kedge::cuda
