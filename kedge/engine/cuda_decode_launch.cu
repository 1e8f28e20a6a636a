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

// One head of a token, by one warp: normalized if there are weights, and rotated. Calls put(channel, value) for every channel. `row` is
// room for a head in shared memory.
template <typename T, typename Put>
__device__ inline void turn_head(const TurnLaunch& l, int dim, const T* x, const void* norm, int64_t token, float* row, int lane,
                                 const Put& put) {
  for (int d = lane; d < dim; d += kWarp) row[d] = widen(x[d]);
  const T* weight = static_cast<const T*>(norm);
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
  const int turned = l.cos == nullptr ? 0 : 2 * l.half;
  const int64_t angles = static_cast<int64_t>(l.positions[token]) * l.half;
  for (int d = lane; d < dim; d += kWarp) {
    float value = row[d];
    if (d < turned) {
      const int i = d < l.half ? d : d - l.half;
      const float cos = l.cos[angles + i], sin = l.sin[angles + i];
      value = d < l.half ? value * cos - row[d + l.half] * sin : value * cos + row[i] * sin;
    }
    put(d, value);
  }
  __syncwarp();  // the row may be used again
}

// Where a token's key and value of a kv head are stored.
template <typename T>
__device__ inline T* key_place(const TurnLaunch& l, int64_t slot, int kv_head) {
  return static_cast<T*>(l.keys) + ((slot / kBlock * l.count.kv_heads + kv_head) * kBlock + slot % kBlock) * l.count.dim;
}
template <typename T>
__device__ inline void store_value(const TurnLaunch& l, const T* x, int64_t slot, int kv_head, int lane) {
  T* to = static_cast<T*>(l.values) + (slot / kBlock * l.count.kv_heads + kv_head) * l.count.dim * kBlock + slot % kBlock;
  for (int d = lane; d < l.count.dim; d += kWarp) to[d * kBlock] = x[d];
}

// A group of threads takes a token and kTurnWarps of its heads, a warp each.
template <typename T>
__global__ void turn_and_store_kernel(const TurnLaunch l) {
  __shared__ float shared[kTurnWarps][kMostDim];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  const int total = l.count.heads + 2 * l.count.kv_heads;
  const int64_t token = blockIdx.x;
  const int head = static_cast<int>(blockIdx.y) * kTurnWarps + warp;
  if (head >= total) return;
  T* x = static_cast<T*>(l.qkv) + (token * total + head) * l.count.dim;
  const int64_t slot = l.slots[token];
  const int kv_head = head - l.count.heads;
  if (kv_head >= l.count.kv_heads) {
    store_value<T>(l, x, slot, kv_head - l.count.kv_heads, lane);
    return;
  }
  T* key = kv_head < 0 ? nullptr : key_place<T>(l, slot, kv_head);
  turn_head<T>(l, l.count.dim, x, kv_head < 0 ? l.q_norm : l.k_norm, token, shared[warp], lane, [&](int d, float value) {
    store(x[d], value);
    if (key != nullptr) store(key[d], value);
  });
}

__device__ inline void multiply(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Eight rows of eight 16-bit numbers, of which thread (g, t) holds two of row g: then it holds two of column g.
__device__ inline uint32_t transposed(uint32_t x) {
  uint32_t y;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
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

// Up to 8 query heads of a kv head of one token over a part of its keys. Every warp takes each fourth chunk of 32 keys with tensor cores,
// straight from the memory: a thread loads 16 bytes, and since a sum may run over channels (or keys) in any order, it calls them the ones
// that the instruction expects from it. Thread (g, t) = (lane / 4, lane % 4) loads channels 32 c + 8 t + {0..7} of keys 8 (g / 2) + g % 2 +
// {0, 2, 4, 6}, for scores S^T = K Q^T of heads 2 t and 2 t + 1; and keys 8 t + {0..7} of channels g + {0, 8, 16, ...}, for O^T = V^T P^T
// of the same heads. Of P^T it then needs, for head g, just the keys it loaded: what the tensor cores call transposed.
struct Lane {
  int warp, index, g, t;
};
__device__ inline Lane this_lane() {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  return {static_cast<int>(threadIdx.x) / kWarp, lane, lane / 4, lane % 4};
}

// What a query sees: keys [first, length).
struct Sight {
  int first, length;

  [[nodiscard]] __device__ bool whole(int chunk) const { return chunk * kChunk >= first && (chunk + 1) * kChunk <= length; }
  [[nodiscard]] __device__ bool sees(int key) const { return key >= first && key < length; }
};

template <int Dim>
struct Queries {
  Quad part[Dim / 32];  // of head g

  __device__ void load(const Bf16* heads, int num_heads, const Lane& lane) {
    const Quad none{};
#pragma unroll
    for (int c = 0; c < Dim / 32; ++c) part[c] = lane.g < num_heads ? load_quad(heads + lane.g * Dim + c * 32 + lane.t * 8) : none;
  }
};

template <int Dim>
struct Keys {
  Quad part[4][Dim / 32];

  __device__ void load(const Bf16* keys, const Lane& lane) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int c = 0; c < Dim / 32; ++c) part[j][c] = load_quad(keys + (8 * (lane.g / 2) + lane.g % 2 + 2 * j) * Dim + c * 32 + lane.t * 8);
  }
};

template <int Dim>
struct Values {
  Quad part[Dim / 8];

  __device__ void load(const Bf16* values, const Lane& lane) {
#pragma unroll
    for (int e = 0; e < Dim / 8; ++e) part[e] = load_quad(values + (e * 8 + lane.g) * kBlock + lane.t * 8);
  }
};

// Of a chunk: [i][0] and [i][1] are of the thread's two heads and its key 2 i, [i][2] and [i][3] of key 2 i + 1.
using Scores = float[2][4];

template <int Dim>
__device__ inline void score_keys(const Queries<Dim>& queries, const Keys<Dim>& keys, Scores& score) {
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int c = 0; c < Dim / 32; ++c)
#pragma unroll
      for (int s = 0; s < 2; ++s) {
        const uint32_t *low = keys.part[2 * i][c].word, *high = keys.part[2 * i + 1][c].word, *query = queries.part[c].word;
        multiply(score[i], low[2 * s], high[2 * s], low[2 * s + 1], high[2 * s + 1], query[2 * s], query[2 * s + 1]);
      }
}

// The softmax so far of the thread's two heads, and the values mixed by it: [e][0] and [e][1] of channel 16 e + g, [2] and [3] of the
// eighth behind it.
template <int Dim>
struct Mixed {
  float out[Dim / 16][4] = {};
  float most[2] = {kNothingYet, kNothingYet}, sum[2] = {};

  // Turns a chunk's scores into weights.
  __device__ void fold(Scores& score, int chunk, const Sight& sight, float scale, int g) {
    float now[2] = {most[0], most[1]};
    const bool whole = sight.whole(chunk);
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        const int key = chunk * kChunk + 8 * (g / 2) + g % 2 + 4 * i + n / 2 * 2;
        score[i][n] = whole || sight.sees(key) ? score[i][n] * scale : kNothingYet;
        now[n % 2] = fmaxf(now[n % 2], score[i][n]);
      }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int offset = 4; offset < kWarp; offset *= 2) now[h] = fmaxf(now[h], __shfl_xor_sync(kAll, now[h], offset));
      const float kept = exp2f(most[h] - now[h]);
      most[h] = now[h];
      sum[h] *= kept;
#pragma unroll
      for (int e = 0; e < Dim / 16; ++e) out[e][h] *= kept, out[e][2 + h] *= kept;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        score[i][n] = exp2f(score[i][n] - most[n % 2]);
        sum[n % 2] += score[i][n];
      }
  }

  __device__ void mix(const Scores& weight, const Values<Dim>& values, int chunk, const Sight& sight, int t) {
    uint32_t mask[4] = {kAll, kAll, kAll, kAll};
    if (!sight.whole(chunk))  // memory after the sequence's end may be anything, even NaN
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = chunk * kChunk + 8 * t + 2 * i;
        mask[i] = (key < sight.length ? 0xFFFFU : 0U) | (key + 1 < sight.length ? 0xFFFF0000U : 0U);
      }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t b0 = transposed(pack(weight[i][0], weight[i][1])), b1 = transposed(pack(weight[i][2], weight[i][3]));
      const uint32_t first = mask[2 * i], second = mask[2 * i + 1];
#pragma unroll
      for (int e = 0; e < Dim / 16; ++e) {
        const uint32_t *low = values.part[2 * e].word, *high = values.part[2 * e + 1].word;
        multiply(out[e], low[2 * i] & first, high[2 * i] & first, low[2 * i + 1] & second, high[2 * i + 1] & second, b0, b1);
      }
    }
  }
};

constexpr int kHeads = 8;

template <int Dim>
struct SharedParts {
  float out[kPagedWarps][kHeads][Dim + 4];  // four more, so that threads write to different banks
  float most[kPagedWarps][kHeads], sum[kPagedWarps][kHeads];

  __device__ void put(Mixed<Dim>& mixed, const Lane& lane) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int head = 2 * lane.t + h;
#pragma unroll
      for (int offset = 4; offset < kWarp; offset *= 2) mixed.sum[h] += __shfl_xor_sync(kAll, mixed.sum[h], offset);
      if (lane.g == 0) most[lane.warp][head] = mixed.most[h], sum[lane.warp][head] = mixed.sum[h];
#pragma unroll
      for (int e = 0; e < Dim / 16; ++e) {
        out[lane.warp][head][16 * e + lane.g] = mixed.out[e][h];
        out[lane.warp][head][16 * e + 8 + lane.g] = mixed.out[e][2 + h];
      }
    }
  }

  // The combined result of the warps, of `num_heads` heads from the token's `first` on.
  __device__ void write(const PagedLaunch& l, int64_t token, int first, int num_heads, int split) const {
    for (int i = static_cast<int>(threadIdx.x); i < num_heads * Dim; i += kPagedWarps * kWarp) {
      const int row = i / Dim, d = i % Dim;
      float all_most = kNothingYet, all_sum = 0, value = 0;
#pragma unroll
      for (int w = 0; w < kPagedWarps; ++w) all_most = fmaxf(all_most, most[w][row]);
#pragma unroll
      for (int w = 0; w < kPagedWarps; ++w) {
        const float kept = exp2f(most[w][row] - all_most);
        all_sum += sum[w][row] * kept;
        value += out[w][row][d] * kept;
      }
      const int64_t head = token * l.count.heads + first + row;
      const float result = all_sum == 0 ? 0.0F : value / all_sum;  // NaN stays NaN
      if (l.num_splits == 1) {
        static_cast<Bf16*>(l.out)[head * Dim + d] = __float2bfloat16(result);
      } else {
        l.part[(head * l.num_splits + split) * Dim + d] = result;
        if (d == 0) l.part_log_sum[head * l.num_splits + split] = all_sum == 0 ? kNothingYet : all_most + log2f(all_sum);
      }
    }
  }
};

// At least this many blocks per multiprocessor: registers are the limit.
template <int Dim>
constexpr int kGroups = Dim == 64   ? 4
                        : Dim == 96 ? 3
                                    : 2;

// What a group of threads needs of turn_and_store: its own query heads, and the new key and value of its kv head. Queries stay in shared
// memory. Where several groups see the same new key, each stores it, with the same bits.
template <int Dim>
struct TurnedHeads {
  alignas(16) Bf16 queries[kHeads][Dim];
  float rows[kPagedWarps][Dim];

  __device__ void turn(const TurnLaunch& l, int64_t token, int kv_head, int first_head, int num_heads, bool stores, const Lane& lane) {
    const Bf16* heads = static_cast<const Bf16*>(l.qkv) + token * (l.count.heads + 2 * l.count.kv_heads) * Dim;
    const Bf16 *key = heads + (l.count.heads + kv_head) * Dim, *value = key + l.count.kv_heads * Dim;
    const int64_t slot = l.slots[token];
    for (int task = lane.warp; task < num_heads + (stores ? 2 : 0); task += kPagedWarps) {
      if (task < num_heads) {
        turn_head<Bf16>(l, Dim, heads + (first_head + task) * Dim, l.q_norm, token, rows[lane.warp], lane.index,
                        [&](int d, float x) { store(queries[task][d], x); });
      } else if (task == num_heads) {
        Bf16* to = key_place<Bf16>(l, slot, kv_head);
        turn_head<Bf16>(l, Dim, key, l.k_norm, token, rows[lane.warp], lane.index, [&](int d, float x) { store(to[d], x); });
      } else {
        store_value<Bf16>(l, value, slot, kv_head, lane.index);
      }
    }
    __syncthreads();
  }
};

template <int Dim, bool Turns>
__global__ void __launch_bounds__(kPagedWarps* kWarp, kGroups<Dim>) paged_attention_kernel(const PagedLaunch l) {
  __shared__ SharedParts<Dim> shared;
  const int64_t token = blockIdx.x;
  const int split = static_cast<int>(blockIdx.z), group = l.count.heads / l.count.kv_heads, parts = (group + kHeads - 1) / kHeads;
  const int kv_head = static_cast<int>(blockIdx.y) / parts, part = static_cast<int>(blockIdx.y) % parts;
  const int first_head = kv_head * group + part * kHeads, num_heads = min(kHeads, group - part * kHeads);
  const Lane lane = this_lane();
  // The first blocks of the table are loaded together with the length, so that no time is lost between the two.
  const int32_t* table = l.tables + token * l.width;
  const int first_blocks = lane.index < l.width ? table[lane.index] : 0;
  const int length = l.positions[token] + 1;
  const Sight sight{l.window > 0 ? max(0, length - l.window) : 0, length};
  const int first_chunk = sight.first / kChunk, num_chunks = (length + kChunk - 1) / kChunk - first_chunk;
  const int share = (num_chunks + l.num_splits - 1) / l.num_splits;
  const int begin = first_chunk + split * share, end = min(first_chunk + num_chunks, begin + share);
  Queries<Dim> queries;
  if constexpr (Turns) {
    __shared__ TurnedHeads<Dim> turned;
    turned.turn(l.turn, token, kv_head, first_head, num_heads, end == first_chunk + num_chunks, lane);
    queries.load(turned.queries[0], num_heads, lane);
  } else {
    queries.load(static_cast<const Bf16*>(l.qkv) + (token * (l.count.heads + 2 * l.count.kv_heads) + first_head) * Dim, num_heads, lane);
  }

  Mixed<Dim> mixed;
#pragma unroll 1
  for (int chunk = begin + lane.warp; chunk < end; chunk += kPagedWarps) {
    const int32_t block = chunk / 2 < kWarp ? __shfl_sync(kAll, first_blocks, chunk / 2) : table[chunk / 2];
    const int64_t base = (static_cast<int64_t>(block) * l.count.kv_heads + kv_head) * kBlock * Dim;
    // All loads are issued before any is used.
    Keys<Dim> keys;
    keys.load(static_cast<const Bf16*>(l.keys) + base + (chunk % 2) * kChunk * Dim, lane);
    Values<Dim> values;
    values.load(static_cast<const Bf16*>(l.values) + base + (chunk % 2) * kChunk, lane);
    Scores score = {};
    score_keys<Dim>(queries, keys, score);
    mixed.fold(score, chunk, sight, l.scale * kLog2E, lane.g);
    mixed.mix(score, values, chunk, sight, lane.t);
  }
  shared.put(mixed, lane);
  __syncthreads();
  shared.write(l, token, first_head, num_heads, split);
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

template <int Dim>
void launch_sized(const PagedLaunch& l, cudaStream_t stream) {
  const int parts = (l.count.heads / l.count.kv_heads + kHeads - 1) / kHeads;
  const dim3 grid(static_cast<unsigned>(l.tokens), static_cast<unsigned>(l.count.kv_heads * parts), static_cast<unsigned>(l.num_splits));
  l.turns ? paged_attention_kernel<Dim, true><<<grid, kPagedWarps * kWarp, 0, stream>>>(l)
          : paged_attention_kernel<Dim, false><<<grid, kPagedWarps * kWarp, 0, stream>>>(l);
}

unsigned groups_of(int64_t tasks, int each) { return static_cast<unsigned>((tasks + each - 1) / each); }

}  // namespace

void launch_turn_and_store(const TurnLaunch& l, cudaStream_t stream) {
  const dim3 groups(static_cast<unsigned>(l.tokens), groups_of(l.count.heads + 2 * l.count.kv_heads, kTurnWarps));
  l.bf16 ? turn_and_store_kernel<Bf16><<<groups, kTurnWarps * kWarp, 0, stream>>>(l)
         : turn_and_store_kernel<float><<<groups, kTurnWarps * kWarp, 0, stream>>>(l);
}

bool is_fast_paged_attention(bool bf16, const HeadCounts& count) {
  return bf16 && (count.dim == 64 || count.dim == 96 || count.dim == 128);
}

void launch_paged_attention(const PagedLaunch& l, cudaStream_t stream) {
  if (!is_fast_paged_attention(l.bf16, l.count)) {
    const unsigned groups = groups_of(l.tokens * l.count.heads, kPlainWarps);
    l.bf16 ? plain_paged_kernel<Bf16><<<groups, kPlainWarps * kWarp, 0, stream>>>(l)
           : plain_paged_kernel<float><<<groups, kPlainWarps * kWarp, 0, stream>>>(l);
    return;
  }
  if (l.count.dim == 64) launch_sized<64>(l, stream);
  if (l.count.dim == 96) launch_sized<96>(l, stream);
  if (l.count.dim == 128) launch_sized<128>(l, stream);
  if (l.num_splits > 1) join_parts_kernel<<<static_cast<unsigned>(l.tokens * l.count.heads), 64, 0, stream>>>(l);
}

}  // namespace kedge::cuda
