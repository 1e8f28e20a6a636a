#include "kedge/engine/cpu_paged_attention.h"

#include <algorithm>
#include <vector>

#include <ATen/Parallel.h>

#include "kedge/core/error.h"
#include "kedge/core/simd.h"
#include "kedge/model/kernels/cpu_rows.h"
#include "kedge/model/kernels/cpu_vectors.h"

namespace kedge::cpu {
namespace {

using V = Vectors<KEDGE_VECTOR_BYTES>;
using Vector = V::Floats;
constexpr int64_t kWidth = V::kWidth;
static_assert(kPagedBlock == kKeys);

// Query heads of a key-value head that are taken together, and how many vectors of each stay in registers.
constexpr int64_t kMostHeads = 4;
constexpr int64_t pieces_for(int64_t num_heads) { return (num_heads == 1 ? 16 : num_heads == 2 ? 8 : 4) * 4 / kWidth; }

// A block that is wanted next: its keys and values come from memory while another one is computed.
template <typename T>
struct Ahead {
  static constexpr int64_t kLine = 64 / sizeof(T);
  const T *keys = nullptr, *values = nullptr;
  int64_t num_keys = 0;  // how many of them are wanted
};

// scores[h][j] = sum over d of queries[h][d] keys[d][j], for the first num_keys keys and some after them.
template <int64_t Heads, typename T>
KEDGE_INLINE void multiply(const float* queries, const T* keys, int64_t num_keys, int64_t dim, float* scores, const Ahead<T>& ahead) {
  constexpr int64_t kPieces = pieces_for(Heads), kStep = kPieces * kWidth, kLine = Ahead<T>::kLine, kLines = (kStep + kLine - 1) / kLine;
  int64_t j = 0;
  for (; j < num_keys; j += kStep) {
    const T* fetched[kLines];
    for (int64_t i = 0; i < kLines; ++i) fetched[i] = (j + i * kLine < ahead.num_keys ? ahead.keys : keys) + j + i * kLine;
    Vector sum[Heads][kPieces] = {};
    for (int64_t d = 0; d < dim; ++d) {
      for (const T* line : fetched) __builtin_prefetch(line + d * kKeys);
      for (int64_t p = 0; p < kPieces; ++p) {
        const Vector key = V::load(keys + d * kKeys + j + p * kWidth);
        for (int64_t h = 0; h < Heads; ++h) sum[h][p] += queries[h * dim + d] * key;
      }
    }
    for (int64_t h = 0; h < Heads; ++h)
      for (int64_t p = 0; p < kPieces; ++p) V::at(scores + h * kKeys + j + p * kWidth) = sum[h][p];
  }
  for (; j < ahead.num_keys; j += kLine)
    for (int64_t d = 0; d < dim; ++d) __builtin_prefetch(ahead.keys + d * kKeys + j);
}

// The keys of a block that a query sees.
struct Seen {
  int64_t begin, end;
};

// out[h][d] += sum over the seen keys j of weights[h][j] values[j][d], for `Pieces` vectors of channels from d on; and, of the first of
// them, total[h] += sum of weights[h][j], next to these sums because each waits for its last addition.
template <int64_t Heads, int64_t Pieces, bool AddsWeights, typename T>
KEDGE_INLINE void mix_channels(const float* weights, const T* values, Seen seen, int64_t dim, int64_t d, float* out, float (&total)[Heads],
                               const Ahead<T>& ahead) {
  constexpr int64_t kLine = Ahead<T>::kLine;
  Vector sum[Heads][Pieces];
  for (int64_t h = 0; h < Heads; ++h)
    for (int64_t p = 0; p < Pieces; ++p) sum[h][p] = V::at(out + h * dim + d + p * kWidth);
  const auto fetch = [&](int64_t j) __attribute__((always_inline)) {
    for (int64_t i = 0; i < Pieces * kWidth; i += kLine) __builtin_prefetch(ahead.values + j * dim + d + i);
  };
  for (int64_t j = seen.begin; j < seen.end; ++j) {
    if (j < ahead.num_keys) fetch(j);
    for (int64_t p = 0; p < Pieces; ++p) {
      const Vector value = V::load(values + j * dim + d + p * kWidth);
      for (int64_t h = 0; h < Heads; ++h) sum[h][p] += weights[h * kKeys + j] * value;
    }
    for (int64_t h = 0; AddsWeights && h < Heads; ++h) total[h] += weights[h * kKeys + j];
  }
  for (int64_t j = seen.end; j < ahead.num_keys; ++j) fetch(j);
  for (int64_t h = 0; h < Heads; ++h)
    for (int64_t p = 0; p < Pieces; ++p) V::at(out + h * dim + d + p * kWidth) = sum[h][p];
}

// The channels from d on, which do not fill a vector. A vector nevertheless: compilers would not fuse a single number's products into its
// sum.
template <int64_t Heads, typename T>
KEDGE_INLINE void mix_last_channels(const float* weights, const T* values, Seen seen, int64_t dim, int64_t d, float* out) {
  Vector sum[Heads] = {};
  for (int64_t h = 0; h < Heads; ++h)
    for (int64_t i = 0; d + i < dim; ++i) sum[h][i] = out[h * dim + d + i];
  for (int64_t j = seen.begin; j < seen.end; ++j) {
    Vector value = {};
    for (int64_t i = 0; d + i < dim; ++i) value[i] = widen(values[j * dim + d + i]);
    for (int64_t h = 0; h < Heads; ++h) sum[h] += weights[h * kKeys + j] * value;
  }
  for (int64_t h = 0; h < Heads; ++h)
    for (int64_t i = 0; d + i < dim; ++i) out[h * dim + d + i] = sum[h][i];
}

template <int64_t Heads, typename T>
KEDGE_INLINE void mix(const float* weights, const T* values, Seen seen, int64_t dim, float* out, float (&total)[Heads],
                      const Ahead<T>& ahead) {
  constexpr int64_t kMany = pieces_for(Heads), kSome = 16 / kWidth;
  int64_t d = 0;
  // The first ones add the weights too, of whichever size.
  if (dim >= kMany * kWidth) {
    mix_channels<Heads, kMany, true>(weights, values, seen, dim, 0, out, total, ahead);
    for (d = kMany * kWidth; d + kMany * kWidth <= dim; d += kMany * kWidth)
      mix_channels<Heads, kMany, false>(weights, values, seen, dim, d, out, total, ahead);
  } else if (dim >= kSome * kWidth) {
    mix_channels<Heads, kSome, true>(weights, values, seen, dim, 0, out, total, ahead);
    d = kSome * kWidth;
  } else {
    for (int64_t j = seen.begin; j < seen.end; ++j)
      for (int64_t h = 0; h < Heads; ++h) total[h] += weights[h * kKeys + j];
  }
  for (; d + kSome * kWidth <= dim; d += kSome * kWidth)
    mix_channels<Heads, kSome, false>(weights, values, seen, dim, d, out, total, ahead);
  for (; d + kWidth <= dim; d += kWidth) mix_channels<Heads, 1, false>(weights, values, seen, dim, d, out, total, ahead);
  if (d < dim) mix_last_channels<Heads>(weights, values, seen, dim, d, out);
}

constexpr int64_t kChains = 4;  // vectors side by side, so that they need not wait for each other

KEDGE_INLINE float largest_of(const float* scores, float least) {
  Vector largest[kChains];
  for (Vector& chain : largest) chain = Vector{} + least;
  for (int64_t j = 0; j < kKeys; j += kChains * kWidth)
    for (int64_t c = 0; c < kChains; ++c) largest[c] = larger<KEDGE_VECTOR_BYTES>(V::at(scores + j + c * kWidth), largest[c]);
  for (int64_t c = 1; c < kChains; ++c) largest[0] = larger<KEDGE_VECTOR_BYTES>(largest[c], largest[0]);
  float result = largest[0][0];
  for (int64_t i = 1; i < kWidth; ++i) result = largest[0][i] > result ? largest[0][i] : result;
  return result;
}

KEDGE_INLINE void to_powers(float* scores, float most) {
  for (int64_t j = 0; j < kKeys; j += kChains * kWidth) {
    Vector power[kChains];
    for (int64_t c = 0; c < kChains; ++c) power[c] = V::at(scores + j + c * kWidth) - most;
    to_exp2<KEDGE_VECTOR_BYTES>(power);
    for (int64_t c = 0; c < kChains; ++c) V::at(scores + j + c * kWidth) = power[c];
  }
}

// The softmax so far: every head's largest score, and the sum of powers over it.
template <int64_t Heads>
struct Softmax {
  static_assert(Heads <= kWidth);
  Vector most = Vector{} + kNothingYet, sum = {};

  // Turns a block's scores into weights and scales `out` [Heads][dim] and the sum to the new maximum; adding the weights is left to mix().
  KEDGE_INLINE void fold(float* scores, Seen seen, int64_t dim, float* out) {
    Vector now = most;
    for (int64_t h = 0; h < Heads; ++h) {
      std::fill_n(scores + h * kKeys, seen.begin, kHidden);
      std::fill(scores + h * kKeys + seen.end, scores + (h + 1) * kKeys, kHidden);
      now[h] = largest_of(scores + h * kKeys, most[h]);
    }
    const Vector kept = V::exp2_of(most - now);
    sum = V::rounded(sum * kept);
    for (int64_t h = 0; h < Heads; ++h) {
      to_powers(scores + h * kKeys, now[h]);
      if (kept[h] != 1.0F)
        for (int64_t d = 0; d < dim; ++d) out[h * dim + d] *= kept[h];
    }
    most = now;
  }
};

// The query heads of one key-value head, for one token.
template <typename T>
struct Group {
  const T *queries, *keys, *values;  // the memory's first block, this head
  T* out;
  const BlockId* blocks;
  int64_t block_size, position, window, num_heads, dim;
  float scale;
  Ahead<T> next;  // the first block of the query after this one
};

template <int64_t Heads, typename T>
KEDGE_INLINE void attend_heads(const Group<T>& group, int64_t first, const Ahead<T>& next, float* scratch) {
  const int64_t dim = group.dim;
  float *queries = scratch, *out = queries + Heads * dim, *scores = out + Heads * dim;
  for (int64_t i = 0; i < Heads * dim; ++i) queries[i] = widen(group.queries[first * dim + i]) * (group.scale * kLog2E);
  std::fill_n(out, Heads * dim, 0.0F);
  Softmax<Heads> softmax;
  const int64_t first_key = group.window == 0 ? 0 : std::max<int64_t>(0, group.position - group.window + 1);
  for (int64_t block = first_key / kKeys; block <= group.position / kKeys; ++block) {
    const Seen seen{std::max<int64_t>(0, first_key - block * kKeys), std::min(kKeys, group.position + 1 - block * kKeys)};
    const int64_t from = group.blocks[block] * group.block_size;
    const bool has_more = (block + 1) * kKeys <= group.position;
    const int64_t then = has_more ? group.blocks[block + 1] * group.block_size : 0;
    const Ahead<T> ahead =
        has_more ? Ahead<T>{group.keys + then, group.values + then, std::min(kKeys, group.position + 1 - (block + 1) * kKeys)} : next;
    multiply<Heads>(queries, group.keys + from, seen.end, dim, scores, ahead);
    softmax.fold(scores, seen, dim, out);
    float total[Heads];
    for (int64_t h = 0; h < Heads; ++h) total[h] = softmax.sum[h];
    mix<Heads>(scores, group.values + from, seen, dim, out, total, ahead);
    for (int64_t h = 0; h < Heads; ++h) softmax.sum[h] = total[h];
  }
  for (int64_t h = 0; h < Heads; ++h) {
    const float share = 1.0F / softmax.sum[h];
    for (int64_t d = 0; d < dim; ++d) store(group.out[(first + h) * dim + d], out[h * dim + d] * share);
  }
}

template <typename T>
KEDGE_INLINE void attend_group(const Group<T>& group, float* scratch) {
  for (int64_t first = 0; first < group.num_heads; first += kMostHeads) switch (group.num_heads - first) {
      case 1:
        return attend_heads<1>(group, first, group.next, scratch);
      case 2:
        return attend_heads<2>(group, first, group.next, scratch);
      case 3:
        return attend_heads<3>(group, first, group.next, scratch);
      default:
        attend_heads<kMostHeads>(group, first, first + kMostHeads < group.num_heads ? Ahead<T>{} : group.next, scratch);
    }
}

KEDGE_VECTOR_CLONES void attend(const Group<float>& group, float* scratch) { attend_group(group, scratch); }
KEDGE_VECTOR_CLONES void attend(const Group<at::BFloat16>& group, float* scratch) { attend_group(group, scratch); }

template <typename T>
void attend_all(const Tensor& qkv, const AttentionShape& shape, std::span<const PagedQuery> queries, const Tensor& keys,
                const Tensor& values, const Tensor& out) {
  const T *in = qkv.const_data_ptr<T>(), *k = keys.const_data_ptr<T>(), *v = values.const_data_ptr<T>();
  T* to = out.mutable_data_ptr<T>();
  const int64_t num_queries = std::ssize(queries), dim = shape.head_dim, group = shape.num_heads / shape.num_kv_heads;
  int64_t num_keys = 0;
  for (const PagedQuery& query : queries) num_keys += query.position + 1;
  const int64_t work = num_keys * group * dim / std::max<int64_t>(1, num_queries);
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work));
  // Head by head, so that threads share long and short sequences equally.
  at::parallel_for(0, shape.num_kv_heads * num_queries, grain, [&](int64_t begin, int64_t end) {
    thread_local std::vector<float> scratch;
    scratch.resize(static_cast<size_t>(kMostHeads * (2 * dim + kKeys)));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t head = task / num_queries, token = task % num_queries;
      const PagedQuery& query = queries[static_cast<size_t>(token)];
      Ahead<T> next;
      if (task + 1 < end) {
        const int64_t next_head = (task + 1) / num_queries;
        const PagedQuery& then = queries[static_cast<size_t>((task + 1) % num_queries)];
        const int64_t first_key = shape.window == 0 ? 0 : std::max<int64_t>(0, then.position - shape.window + 1), block = first_key / kKeys;
        const int64_t from = (then.blocks[block] * shape.num_kv_heads + next_head) * dim * kKeys;
        next = {k + from, v + from, std::min(kKeys, then.position + 1 - block * kKeys)};
      }
      attend({in + token * qkv.size(1) + head * group * dim, k + head * dim * kKeys, v + head * dim * kKeys,
              to + token * out.size(1) + head * group * dim, query.blocks, shape.num_kv_heads * dim * kKeys, query.position, shape.window,
              group, dim, static_cast<float>(shape.scale()), next},
             scratch.data());
    }
  });
}

template <typename T>
void write_all(const Tensor& qkv, const AttentionShape& shape, std::span<const PagedQuery> queries, const Tensor& keys,
               const Tensor& values) {
  const T* in = qkv.const_data_ptr<T>();
  T *k = keys.mutable_data_ptr<T>(), *v = values.mutable_data_ptr<T>();
  const int64_t dim = shape.head_dim, width = qkv.size(1), heads = shape.num_kv_heads;
  at::parallel_for(0, std::ssize(queries), std::max<int64_t>(1, 8192 / width), [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const auto [blocks, position] = queries[static_cast<size_t>(token)];
      const int64_t slot = position % kKeys;
      for (int64_t head = 0; head < heads; ++head) {
        const T* key = in + token * width + (shape.num_heads + head) * dim;
        const int64_t at = (blocks[position / kKeys] * heads + head) * dim * kKeys;
        for (int64_t d = 0; d < dim; ++d) k[at + d * kKeys + slot] = key[d];
        std::copy_n(key + heads * dim, dim, v + at + slot * dim);
      }
    }
  });
}

void check_memory(const Tensor& qkv, const AttentionShape& shape, std::span<const PagedQuery> queries, const Tensor& keys,
                  const Tensor& values) {
  ensure(qkv.size(0) == std::ssize(queries), "a query for every token");
  ensure(keys.sizes().slice(1) == at::IntArrayRef({shape.num_kv_heads, shape.head_dim, kKeys}), "keys are channels by keys");
  ensure(values.sizes().slice(1) == at::IntArrayRef({shape.num_kv_heads, kKeys, shape.head_dim}), "values are keys by channels");
}

}  // namespace

void write_key_values(const Tensor& qkv, const AttentionShape& shape, std::span<const PagedQuery> queries, const Tensor& keys,
                      const Tensor& values) {
  check_memory(qkv, shape, queries, keys, values);
  qkv.scalar_type() == at::kFloat ? write_all<float>(qkv, shape, queries, keys, values)
                                  : write_all<at::BFloat16>(qkv, shape, queries, keys, values);
}

void paged_attention(const Tensor& qkv, const AttentionShape& shape, std::span<const PagedQuery> queries, const Tensor& keys,
                     const Tensor& values, const Tensor& out) {
  check_memory(qkv, shape, queries, keys, values);
  qkv.scalar_type() == at::kFloat ? attend_all<float>(qkv, shape, queries, keys, values, out)
                                  : attend_all<at::BFloat16>(qkv, shape, queries, keys, values, out);
}

}  // namespace kedge::cpu
