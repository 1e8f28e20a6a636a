#pragma once
// Attention of decoding tokens to pages of keys and values, with tensor cores.
#include "kedge/engine/cuda_turn.cuh"

namespace kedge::cuda {

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

struct alignas(16) Quad {
  uint32_t word[4];
};
__device__ inline Quad load_quad(const Bf16* from) {
  const uint4 loaded = *reinterpret_cast<const uint4*>(from);
  return {loaded.x, loaded.y, loaded.z, loaded.w};
}

// Up to 8 query heads of a kv head of one token over a part of its keys. Every warp takes each fourth chunk of 32 keys with tensor cores.
// Thread (g, t) = (lane / 4, lane % 4) reads keys by 16 bytes, and since a sum may run over channels in any order, it calls them the ones
// that the instruction expects from it: channels 32 c + 8 t + {0..7} of keys 8 (g / 2) + g % 2 + {0, 2, 4, 6}, for scores S^T = K Q^T of
// heads 2 t and 2 t + 1. For O^T = V^T P^T of the same heads it needs keys 8 t + {0..7} of channels g + {0, 8, 16, ...}, and of P^T, for
// head g, just these keys: what the tensor cores call transposed.
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

// Copies 16 bytes to shared memory while the thread goes on. Copies are awaited in groups, in the order in which they were closed.
__device__ inline void copy_quad(Quad& to, const Bf16* from) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;"
               :
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(&to))), "l"(from)
               : "memory");
}
__device__ inline void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Later>  // groups that may still be on their way
__device__ inline void await_group() {
  asm volatile("cp.async.wait_group %0;" : : "n"(Later) : "memory");
}

// Of four matrices of eight rows in shared memory thread (g, t) gets numbers g of rows 2 t and 2 t + 1. Each thread says where a row of
// them begins: threads 0 to 7 of the first matrix, 8 to 15 of the second, and so on.
__device__ inline Quad load_columns(const Quad& row) {
  Quad to;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to.word[0]), "=r"(to.word[1]), "=r"(to.word[2]), "=r"(to.word[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(&row)))
               : "memory");
  return to;
}

// A chunk on its way from memory. Of the keys every thread copies what it will read itself, so that nobody waits for another.
template <int Dim>
struct Chunk {
  static constexpr int kRow = Dim / 8;              // quads of a value
  static constexpr int kRoom = kRow <= 8 ? 8 : 16;  // and what it takes
  Quad keys[4][Dim / 32][kWarp], values[kChunk][kRoom];

  __device__ void copy_keys(const Bf16* from, const Lane& lane) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int c = 0; c < Dim / 32; ++c)
        copy_quad(keys[j][c][lane.index], from + (8 * (lane.g / 2) + lane.g % 2 + 2 * j) * Dim + c * 32 + lane.t * 8);
  }
  __device__ void copy_values(const Bf16* from, const Lane& lane) {
#pragma unroll
    for (int e = 0; e < kRow; ++e) {
      const int i = e * kWarp + lane.index;
      copy_quad(value_quad(i / kRow, i % kRow), from + i * 8);
    }
  }

  // Quads of a value change places with their neighbours, so that the eight rows of a matrix lie in different banks.
  __device__ Quad& value_quad(int key, int index) { return values[key][index ^ (key / 8 * 2 + key % 2)]; }
  // Channels 16 e + g and those eight behind them, of keys 8 t + 4 i + {0, 1}, then of the two behind those.
  __device__ Quad value_columns(int e, int i, int lane) const {
    const int row = lane % 8, key = row / 2 * 8 + row % 2 + lane / 16 * 2 + i * 4;
    return load_columns(values[key][(2 * e + lane / 8 % 2) ^ row]);
  }

  // One key of the chunk where a thread holds a part of it, and its value.
  __device__ void put_key(const Bf16* key, int index, const Lane& lane) {
    const int j = (index % 8 - lane.g % 2) / 2;
    if (index / 8 != lane.g / 2 || index % 2 != lane.g % 2) return;
#pragma unroll
    for (int c = 0; c < Dim / 32; ++c) keys[j][c][lane.index] = load_quad(key + c * 32 + lane.t * 8);
  }
  __device__ void put_value(const Bf16* value, int index, const Lane& lane) {
    if (lane.index < kRow) value_quad(index, lane.index) = load_quad(value + lane.index * 8);
  }
  // Memory after the sequence's end may be anything, even NaN.
  __device__ void clear_values(int from, const Lane& lane) {
    for (int i = from * kRoom + lane.index; i < kChunk * kRoom; i += kWarp) values[i / kRoom][i % kRoom] = {};
  }
};

// Of a chunk: [i][0] and [i][1] are of the thread's two heads and its key 2 i, [i][2] and [i][3] of key 2 i + 1.
using Scores = float[2][4];

template <int Dim>
__device__ inline void score_keys(const Queries<Dim>& queries, const Chunk<Dim>& from, int lane, Scores& score) {
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int c = 0; c < Dim / 32; ++c) {
      const Quad low = from.keys[2 * i][c][lane], high = from.keys[2 * i + 1][c][lane];
      const uint32_t* query = queries.part[c].word;
#pragma unroll
      for (int s = 0; s < 2; ++s)
        multiply(score[i], low.word[2 * s], high.word[2 * s], low.word[2 * s + 1], high.word[2 * s + 1], query[2 * s], query[2 * s + 1]);
    }
}

// The softmax so far of the thread's two heads, and the values mixed by it: [e][0] and [e][1] of channel 16 e + g, [2] and [3] of the
// one eight behind it.
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

  __device__ void mix(const Scores& weight, const Chunk<Dim>& from, int lane) {
    uint32_t b[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      b[i][0] = transposed(pack(weight[i][0], weight[i][1])), b[i][1] = transposed(pack(weight[i][2], weight[i][3]));
#pragma unroll
    for (int e = 0; e < Dim / 16; ++e)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Quad value = from.value_columns(e, i, lane);
        multiply(out[e], value.word[0], value.word[1], value.word[2], value.word[3], b[i][0], b[i][1]);
      }
  }
};

constexpr int kHeads = 8;

template <int Dim>
struct SharedParts {
  alignas(16) float out[kPagedWarps][kHeads][Dim + 4];  // four more, so that threads write to different banks
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

  // The combined result of the warps, of `num_heads` heads from the token's `first` on; a thread takes four channels at a time.
  __device__ void write(const PagedLaunch& l, int64_t token, int first, int num_heads, int split) const {
    for (int i = static_cast<int>(threadIdx.x); i < num_heads * Dim / 4; i += kPagedWarps * kWarp) {
      const int row = i / (Dim / 4), d = i % (Dim / 4) * 4;
      float all_most = kNothingYet, all_sum = 0, value[4] = {};
#pragma unroll
      for (int w = 0; w < kPagedWarps; ++w) all_most = fmaxf(all_most, most[w][row]);
#pragma unroll
      for (int w = 0; w < kPagedWarps; ++w) {
        const float kept = exp2f(most[w][row] - all_most);
        const float4 part = *reinterpret_cast<const float4*>(&out[w][row][d]);
        all_sum += sum[w][row] * kept;
        value[0] += part.x * kept, value[1] += part.y * kept, value[2] += part.z * kept, value[3] += part.w * kept;
      }
#pragma unroll
      for (float& x : value) x = all_sum == 0 ? 0.0F : x / all_sum;  // NaN stays NaN
      const int64_t head = token * l.count.heads + first + row;
      if (l.num_splits == 1) {
        *reinterpret_cast<uint2*>(static_cast<Bf16*>(l.out) + head * Dim + d) = {pack(value[0], value[1]), pack(value[2], value[3])};
      } else {
        *reinterpret_cast<float4*>(l.part + (head * l.num_splits + split) * Dim + d) = {value[0], value[1], value[2], value[3]};
        if (d == 0) l.part_log_sum[head * l.num_splits + split] = all_sum == 0 ? kNothingYet : all_most + log2f(all_sum);
      }
    }
  }
};

// Groups of threads on a multiprocessor, as its registers and shared memory allow.
template <int Dim>
constexpr int kGroups = Dim == 64 ? 4 : 3;

// What a group of threads needs of turn_and_store: its own query heads, and the new key and value of its kv head, which also stay in
// shared memory. Where several groups see the same new key, each stores it, with the same bits.
template <int Dim>
struct TurnedHeads {
  alignas(16) Bf16 queries[kHeads][Dim], key[Dim], value[Dim];
  alignas(16) float rows[kPagedWarps][Dim];
};

// A warp takes every fourth of these tasks: the queries, the key, the value.
template <int Dim>
struct HeadTasks {
  static constexpr int kParts = Dim / kWarp, kMost = (kHeads + 2 + kPagedWarps - 1) / kPagedWarps;
  RawHead<Bf16, kParts> raw[kMost];
  int64_t slot;
  int num_heads;

  // Before anything else, so that it arrives while the first chunks are on their way.
  __device__ void load(const TurnLaunch& l, int64_t token, int kv_head, int first_head, int heads, const Lane& lane) {
    num_heads = heads, slot = l.slots[token];
    const Bf16* row = static_cast<const Bf16*>(l.qkv) + token * (l.count.heads + 2 * l.count.kv_heads) * Dim;
#pragma unroll
    for (int r = 0; r < kMost; ++r) {
      const int task = r * kPagedWarps + lane.warp;
      if (task >= heads + 2) continue;
      const int head = task < heads ? first_head + task : l.count.heads + kv_head + (task == heads ? 0 : l.count.kv_heads);
      raw[r].load(row + head * Dim, task < heads ? l.q_norm : task == heads ? l.k_norm : nullptr, Dim, lane.index);
    }
  }

  __device__ void turn(const TurnLaunch& l, int position, int kv_head, TurnedHeads<Dim>& to, const Lane& lane) const {
    Angles<kParts> angles;
    angles.load(l, position, lane.index);
#pragma unroll
    for (int r = 0; r < kMost; ++r) {
      const int task = r * kPagedWarps + lane.warp;
      if (task <= num_heads) {
        const bool is_key = task == num_heads;
        Bf16 turned[kParts];
        turn_head(l, Dim, raw[r], (is_key ? l.k_norm : l.q_norm) != nullptr, angles, to.rows[lane.warp], lane.index, turned);
        store_channels<kParts>(is_key ? to.key : to.queries[task], Dim, lane.index, turned);
        if (is_key) store_channels<kParts>(place_of<Bf16>(l, l.keys, slot, kv_head), Dim, lane.index, turned);
      } else if (task == num_heads + 1) {
        store_channels<kParts>(to.value, Dim, lane.index, raw[r].x);
        store_channels<kParts>(place_of<Bf16>(l, l.values, slot, kv_head), Dim, lane.index, raw[r].x);
      }
    }
    __syncthreads();
  }
};

// Shared memory in the loop, and after it.
template <int Dim>
union GroupMemory {
  Chunk<Dim> chunks[kPagedWarps];
  SharedParts<Dim> parts;
};

template <int Dim, bool Turns>
__global__ void __launch_bounds__(kPagedWarps* kWarp, kGroups<Dim>) paged_attention_kernel(const PagedLaunch l) {
  extern __shared__ uint4 memory[];
  auto& shared = *reinterpret_cast<GroupMemory<Dim>*>(memory);
  const int64_t token = blockIdx.x;
  const int split = static_cast<int>(blockIdx.z), group = l.count.heads / l.count.kv_heads, parts = (group + kHeads - 1) / kHeads;
  const int kv_head = static_cast<int>(blockIdx.y) / parts, part = static_cast<int>(blockIdx.y) % parts;
  const int first_head = kv_head * group + part * kHeads, num_heads = min(kHeads, group - part * kHeads);
  const Lane lane = this_lane();
  // Everything whose place is known is loaded together, so that no time is lost between one and the next.
  const int32_t* table = l.tables + token * l.width;
  const int first_blocks = lane.index < l.width ? table[lane.index] : 0;
  const int position = l.positions[token], length = position + 1;
  const Sight sight{l.window > 0 ? max(0, length - l.window) : 0, length};
  const int first_chunk = sight.first / kChunk, num_chunks = (length + kChunk - 1) / kChunk - first_chunk;
  const int share = (num_chunks + l.num_splits - 1) / l.num_splits;
  const int begin = first_chunk + split * share, end = min(first_chunk + num_chunks, begin + share);
  HeadTasks<Dim> tasks;
  if constexpr (Turns) tasks.load(l.turn, token, kv_head, first_head, num_heads, lane);
  Chunk<Dim>& own = shared.chunks[lane.warp];
  const auto place = [&](int chunk) {
    const int32_t block = chunk / 2 < kWarp ? __shfl_sync(kAll, first_blocks, chunk / 2) : table[chunk / 2];
    return (static_cast<int64_t>(block) * l.count.kv_heads + kv_head) * kBlock * Dim;
  };
  // Copies of nothing are a group too.
  const auto copy_keys = [&](int chunk) {
    if (chunk < end) own.copy_keys(static_cast<const Bf16*>(l.keys) + place(chunk) + (chunk % 2) * kChunk * Dim, lane);
    close_group();
  };
  const auto copy_values = [&](int chunk) {
    if (chunk < end) own.copy_values(static_cast<const Bf16*>(l.values) + place(chunk) + (chunk % 2) * kChunk * Dim, lane);
    close_group();
  };
  copy_keys(begin + lane.warp);
  copy_values(begin + lane.warp);
  Queries<Dim> queries;
  __shared__ TurnedHeads<Dim> turned;
  if constexpr (Turns) {
    tasks.turn(l.turn, position, kv_head, turned, lane);
    queries.load(turned.queries[0], num_heads, lane);
  } else {
    queries.load(static_cast<const Bf16*>(l.qkv) + (token * (l.count.heads + 2 * l.count.kv_heads) + first_head) * Dim, num_heads, lane);
  }

  // Keys are copied again as soon as they are scored, values as soon as they are mixed: whatever is awaited, the other is on its way. The
  // token's own key and value may not have been in memory yet when their chunk was copied.
  Mixed<Dim> mixed;
#pragma unroll 1
  for (int chunk = begin + lane.warp; chunk < end; chunk += kPagedWarps) {
    const bool has_own = Turns && chunk == position / kChunk;
    await_group<1>();
    if (has_own) own.put_key(turned.key, position % kChunk, lane);
    Scores score = {};
    score_keys<Dim>(queries, own, lane.index, score);
    copy_keys(chunk + kPagedWarps);
    mixed.fold(score, chunk, sight, l.scale * kLog2E, lane.g);
    await_group<1>();
    if (has_own) own.put_value(turned.value, position % kChunk, lane);
    if (!sight.whole(chunk)) own.clear_values(length - chunk * kChunk, lane);
    __syncwarp();
    mixed.mix(score, own, lane.index);
    __syncwarp();
    copy_values(chunk + kPagedWarps);
  }
  __syncthreads();  // the warps' results take the place of the chunks
  shared.parts.put(mixed, lane);
  __syncthreads();
  shared.parts.write(l, token, first_head, num_heads, split);
}

}  // namespace kedge::cuda
