#include "kedge/model/cpu_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>

#include "kedge/core/error.h"
#include "kedge/model/cpu_rows.h"

#if defined(__x86_64__)
#define KEDGE_VECTOR_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#define KEDGE_VECTOR_BYTES 32
#else
#define KEDGE_VECTOR_CLONES
#define KEDGE_VECTOR_BYTES 16
#endif

namespace kedge::cpu {
namespace {

using Vector = float __attribute__((vector_size(KEDGE_VECTOR_BYTES), aligned(4), may_alias));
constexpr int64_t kWidth = KEDGE_VECTOR_BYTES / 4;
constexpr int64_t kQueries = 8;  // taken together
constexpr int64_t kKeys = 64;    // a block of them
constexpr int64_t kStep = 8;     // keys or channels in registers at a time
constexpr int64_t kVectors = kStep / kWidth;

[[gnu::always_inline]] inline Vector& at(float* p) { return *reinterpret_cast<Vector*>(p); }
[[gnu::always_inline]] inline const Vector& at(const float* p) { return *reinterpret_cast<const Vector*>(p); }

// out[q][j] = sum over d of a[d][q] b[d][j]; a [dim][kQueries], b [dim][kKeys], out [kQueries][kKeys].
[[gnu::always_inline]] inline void multiply(const float* a, const float* b, int64_t dim, float* out) {
  for (int64_t j = 0; j < kKeys; j += kStep) {
    Vector sum[kQueries][kVectors] = {};
    for (int64_t d = 0; d < dim; ++d)
      for (int64_t v = 0; v < kVectors; ++v) {
        const Vector keys = at(b + d * kKeys + j + v * kWidth);
        for (int64_t q = 0; q < kQueries; ++q) sum[q][v] += a[d * kQueries + q] * keys;
      }
    for (int64_t q = 0; q < kQueries; ++q)
      for (int64_t v = 0; v < kVectors; ++v) at(out + q * kKeys + j + v * kWidth) = sum[q][v];
  }
}

// out[q][d] += sum over j of weights[q][j] rows[j][d]; weights [kQueries][kKeys], rows [num_keys][dim], out [kQueries][dim].
[[gnu::always_inline]] inline void mix(const float* weights, const float* rows, int64_t num_keys, int64_t dim, float* out) {
  for (int64_t d = 0; d < dim; d += kStep) {
    Vector sum[kQueries][kVectors];
    for (int64_t q = 0; q < kQueries; ++q)
      for (int64_t v = 0; v < kVectors; ++v) sum[q][v] = at(out + q * dim + d + v * kWidth);
    for (int64_t j = 0; j < num_keys; ++j)
      for (int64_t v = 0; v < kVectors; ++v) {
        const Vector row = at(rows + j * dim + d + v * kWidth);
        for (int64_t q = 0; q < kQueries; ++q) sum[q][v] += weights[q * kKeys + j] * row;
      }
    for (int64_t q = 0; q < kQueries; ++q)
      for (int64_t v = 0; v < kVectors; ++v) at(out + q * dim + d + v * kWidth) = sum[q][v];
  }
}

// rows[j][d] += sum over q of weights[q][j] a[q][d]; a [kQueries][dim].
[[gnu::always_inline]] inline void spread(const float* weights, const float* a, int64_t num_keys, int64_t dim, float* rows) {
  for (int64_t d = 0; d < dim; d += kStep) {
    Vector values[kQueries][kVectors];
    for (int64_t q = 0; q < kQueries; ++q)
      for (int64_t v = 0; v < kVectors; ++v) values[q][v] = at(a + q * dim + d + v * kWidth);
    for (int64_t j = 0; j < num_keys; ++j)
      for (int64_t v = 0; v < kVectors; ++v) {
        Vector sum = at(rows + j * dim + d + v * kWidth);
        for (int64_t q = 0; q < kQueries; ++q) sum += weights[q * kKeys + j] * values[q][v];
        at(rows + j * dim + d + v * kWidth) = sum;
      }
  }
}

// One row's head in memory: `stride` elements from token to token.
template <typename T>
struct Rows {
  T* data;
  int64_t stride;
};

struct Head {
  int64_t length, dim, padded_dim, window;
  float scale;

  [[nodiscard]] int64_t num_blocks() const { return (length + kKeys - 1) / kKeys; }
  [[nodiscard]] int64_t keys_of(int64_t block) const { return std::min(kKeys, length - block * kKeys); }
  [[nodiscard]] int64_t first_block(int64_t query) const { return window == 0 ? 0 : std::max<int64_t>(0, query - window + 1) / kKeys; }
  // The keys of a block that a query sees: [first, last).
  [[nodiscard]] int64_t first_key(int64_t query, int64_t block) const {
    return window == 0 ? 0 : std::max<int64_t>(0, query - window + 1 - block * kKeys);
  }
  [[nodiscard]] int64_t last_key(int64_t query, int64_t block) const {
    return query >= length ? 0 : std::clamp<int64_t>(query + 1 - block * kKeys, 0, kKeys);
  }
};

// Padded fp32 copies of a head's rows, one after another (`plain`) and by blocks of keys with channels outside (`turned`).
template <typename T>
[[gnu::always_inline]] inline void copy_plain(const Rows<const T>& rows, const Head& head, float* out) {
  for (int64_t j = 0; j < head.length; ++j)
    for (int64_t d = 0; d < head.dim; ++d) out[j * head.padded_dim + d] = widen(rows.data[j * rows.stride + d]);
}
template <typename T>
[[gnu::always_inline]] inline void copy_turned(const Rows<const T>& rows, const Head& head, float* out) {
  for (int64_t j = 0; j < head.length; ++j) {
    float* to = out + j / kKeys * kKeys * head.padded_dim + j % kKeys;
    for (int64_t d = 0; d < head.dim; ++d) to[d * kKeys] = widen(rows.data[j * rows.stride + d]);
  }
}
// kQueries rows from `first` on, times `scale`: by rows, by channels, or both. Rows behind the end stay zero.
template <typename T>
[[gnu::always_inline]] inline void copy_queries(const Rows<const T>& rows, int64_t first, const Head& head, float scale, float* plain,
                                                float* turned) {
  std::fill_n(turned, head.padded_dim * kQueries, 0.0F);
  if (plain != nullptr) std::fill_n(plain, head.padded_dim * kQueries, 0.0F);
  for (int64_t q = 0; q < kQueries && first + q < head.length; ++q)
    for (int64_t d = 0; d < head.dim; ++d) {
      const float value = widen(rows.data[(first + q) * rows.stride + d]) * scale;
      turned[d * kQueries + q] = value;
      if (plain != nullptr) plain[q * head.padded_dim + d] = value;
    }
}

struct Softmax {
  float most[kQueries], sum[kQueries];
};

// Turns a block's scores into weights; earlier sums are rescaled to the new maximum.
[[gnu::always_inline]] inline void fold_block(const Head& head, int64_t first_query, int64_t block, float* scores, float* out,
                                              Softmax& state) {
  for (int64_t q = 0; q < kQueries; ++q) {
    float* row = scores + q * kKeys;
    const int64_t begin = head.first_key(first_query + q, block), end = head.last_key(first_query + q, block);
    if (begin >= end) {
      std::fill_n(row, kKeys, 0.0F);
      continue;
    }
    std::fill(row, row + begin, -INFINITY);
    std::fill(row + end, row + kKeys, -INFINITY);
    const float block_most = max_of(kKeys, [row](int64_t j) { return row[j]; });
    const float most = std::max(state.most[q], block_most);
    const float kept = exp_of(state.most[q] - most);
    for (int64_t j = 0; j < kKeys; ++j) row[j] = exp_of(row[j] - most);
    state.sum[q] = state.sum[q] * kept + sum_of(kKeys, [row](int64_t j) { return row[j]; });
    state.most[q] = most;
    if (kept != 1.0F)
      for (int64_t d = 0; d < head.padded_dim; ++d) out[q * head.padded_dim + d] *= kept;
  }
}

template <typename T>
struct ForwardHead {
  Rows<const T> q, k, v;
  Rows<T> out;
  float* log_sum;
};

struct Scratch {
  std::vector<float> values;
  float* take(int64_t size) {  // zeros, until the next reset
    const size_t begin = used;
    used += static_cast<size_t>(size);
    ensure(used <= values.size(), "attention's scratch memory");
    std::fill_n(values.begin() + static_cast<ptrdiff_t>(begin), size, 0.0F);
    return values.data() + begin;
  }
  size_t used = 0;
};

Scratch& scratch(const Head& head, int64_t num_matrices) {
  thread_local Scratch memory;
  const int64_t matrix = head.num_blocks() * kKeys * head.padded_dim;
  const auto wanted = static_cast<size_t>(num_matrices * matrix + 8 * kQueries * (head.padded_dim + kKeys));
  if (memory.values.size() < wanted) memory.values.resize(wanted);
  memory.used = 0;
  return memory;
}

// All query heads of one key-value head.
#define KEDGE_ATTENTION(T)                                                                                                        \
  KEDGE_VECTOR_CLONES void attend(const Head& head, const std::vector<ForwardHead<T>>& group) {                                   \
    Scratch& memory = scratch(head, 2);                                                                                           \
    const int64_t matrix = head.num_blocks() * kKeys * head.padded_dim;                                                           \
    float *keys = memory.take(matrix), *values = memory.take(matrix);                                                             \
    float *queries = memory.take(kQueries * head.padded_dim), *scores = memory.take(kQueries * kKeys);                            \
    float* out = memory.take(kQueries * head.padded_dim);                                                                         \
    copy_turned(group[0].k, head, keys);                                                                                          \
    copy_plain(group[0].v, head, values);                                                                                         \
    for (const ForwardHead<T>& one : group)                                                                                       \
      for (int64_t first = 0; first < head.length; first += kQueries) {                                                           \
        copy_queries(one.q, first, head, head.scale, nullptr, queries);                                                           \
        std::fill_n(out, kQueries* head.padded_dim, 0.0F);                                                                        \
        Softmax state;                                                                                                            \
        std::fill_n(state.most, kQueries, -1e30F);                                                                                \
        std::fill_n(state.sum, kQueries, 0.0F);                                                                                   \
        const int64_t last = std::min(head.length, first + kQueries) - 1;                                                         \
        for (int64_t block = head.first_block(first); block <= last / kKeys; ++block) {                                           \
          multiply(queries, keys + block * kKeys * head.padded_dim, head.padded_dim, scores);                                     \
          fold_block(head, first, block, scores, out, state);                                                                     \
          mix(scores, values + block * kKeys * head.padded_dim, std::min(kKeys, last + 1 - block * kKeys), head.padded_dim, out); \
        }                                                                                                                         \
        for (int64_t q = 0; q < kQueries && first + q < head.length; ++q) {                                                       \
          one.log_sum[first + q] = state.most[q] + std::log(state.sum[q]);                                                        \
          const float share = 1.0F / state.sum[q];                                                                                \
          for (int64_t d = 0; d < head.dim; ++d)                                                                                  \
            store(one.out.data[(first + q) * one.out.stride + d], out[q * head.padded_dim + d] * share);                          \
        }                                                                                                                         \
      }                                                                                                                           \
  }                                                                                                                               \
  KEDGE_VECTOR_CLONES void attend_backward(const Head& head, const std::vector<BackwardHead<T>>& group) {                         \
    Scratch& memory = scratch(head, 5);                                                                                           \
    const int64_t matrix = head.num_blocks() * kKeys * head.padded_dim, block_size = kKeys * head.padded_dim;                     \
    float *keys = memory.take(matrix), *turned_keys = memory.take(matrix), *turned_values = memory.take(matrix);                  \
    float *dkeys = memory.take(matrix), *dvalues = memory.take(matrix);                                                           \
    float *queries = memory.take(kQueries * head.padded_dim), *turned_queries = memory.take(kQueries * head.padded_dim);          \
    float *douts = memory.take(kQueries * head.padded_dim), *turned_douts = memory.take(kQueries * head.padded_dim);              \
    float *probs = memory.take(kQueries * kKeys), *dscores = memory.take(kQueries * kKeys);                                       \
    float* dqueries = memory.take(kQueries * head.padded_dim);                                                                    \
    copy_plain(group[0].k, head, keys);                                                                                           \
    copy_turned(group[0].k, head, turned_keys);                                                                                   \
    copy_turned(group[0].v, head, turned_values);                                                                                 \
    for (const BackwardHead<T>& one : group)                                                                                      \
      for (int64_t first = 0; first < head.length; first += kQueries) {                                                           \
        copy_queries(one.q, first, head, head.scale, queries, turned_queries);                                                    \
        copy_queries(one.dout, first, head, 1.0F, douts, turned_douts);                                                           \
        std::fill_n(dqueries, kQueries* head.padded_dim, 0.0F);                                                                   \
        float along[kQueries];                                                                                                    \
        for (int64_t q = 0; q < kQueries; ++q) {                                                                                  \
          const T* out = one.out.data + std::min(first + q, head.length - 1) * one.out.stride;                                    \
          along[q] = sum_of(head.dim, [&](int64_t d) { return douts[q * head.padded_dim + d] * widen(out[d]); });                 \
        }                                                                                                                         \
        const int64_t last = std::min(head.length, first + kQueries) - 1;                                                         \
        for (int64_t block = head.first_block(first); block <= last / kKeys; ++block) {                                           \
          const int64_t num_keys = std::min(kKeys, last + 1 - block * kKeys);                                                     \
          multiply(turned_queries, turned_keys + block * block_size, head.padded_dim, probs);                                     \
          multiply(turned_douts, turned_values + block * block_size, head.padded_dim, dscores);                                   \
          for (int64_t q = 0; q < kQueries; ++q) {                                                                                \
            float *p = probs + q * kKeys, *ds = dscores + q * kKeys;                                                              \
            const int64_t begin = head.first_key(first + q, block), end = head.last_key(first + q, block);                        \
            const float log_sum = begin < end ? one.log_sum[first + q] : 0.0F;                                                    \
            for (int64_t j = 0; j < kKeys; ++j) {                                                                                 \
              const float seen = j >= begin && j < end ? exp_of(p[j] - log_sum) : 0.0F;                                           \
              p[j] = seen;                                                                                                        \
              ds[j] = seen * (ds[j] - along[q]);                                                                                  \
            }                                                                                                                     \
          }                                                                                                                       \
          mix(dscores, keys + block * block_size, num_keys, head.padded_dim, dqueries);                                           \
          spread(dscores, queries, num_keys, head.padded_dim, dkeys + block * block_size);                                        \
          spread(probs, douts, num_keys, head.padded_dim, dvalues + block * block_size);                                          \
        }                                                                                                                         \
        for (int64_t q = 0; q < kQueries && first + q < head.length; ++q)                                                         \
          for (int64_t d = 0; d < head.dim; ++d)                                                                                  \
            store(one.dq.data[(first + q) * one.dq.stride + d], dqueries[q * head.padded_dim + d] * head.scale);                  \
      }                                                                                                                           \
    for (int64_t j = 0; j < head.length; ++j)                                                                                     \
      for (int64_t d = 0; d < head.dim; ++d) {                                                                                    \
        store(group[0].dk.data[j * group[0].dk.stride + d], dkeys[j * head.padded_dim + d]);                                      \
        store(group[0].dv.data[j * group[0].dv.stride + d], dvalues[j * head.padded_dim + d]);                                    \
      }                                                                                                                           \
  }

template <typename T>
struct BackwardHead {
  Rows<const T> q, k, v, out, dout;
  Rows<T> dq, dk, dv;
  const float* log_sum;
};

KEDGE_ATTENTION(float)
KEDGE_ATTENTION(at::BFloat16)
#undef KEDGE_ATTENTION

// Calls work(head, first token of the row, kv head) for every row and kv head, on all threads.
template <typename F>
void for_each_head(const PackedBatch& batch, const AttentionShape& shape, F&& work) {
  std::vector<int64_t> starts;
  int64_t start = 0;
  for (const int64_t length : batch.lengths) starts.push_back(start), start += length;
  const int64_t padded_dim = (shape.head_dim + kStep - 1) / kStep * kStep;
  at::parallel_for(0, batch.num_rows() * shape.num_kv_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const auto row = static_cast<size_t>(task / shape.num_kv_heads);
      const Head head{batch.lengths[row], shape.head_dim, padded_dim, shape.window, static_cast<float>(shape.scale())};
      work(head, starts[row], task % shape.num_kv_heads);
    }
  });
}

// Where a head's channels begin in a row of qkv.
struct Columns {
  int64_t q, k, v;
};
Columns columns_of(const AttentionShape& shape, int64_t kv_head, int64_t member) {
  const int64_t group = shape.num_heads / shape.num_kv_heads, dim = shape.head_dim;
  return {(kv_head * group + member) * dim, (shape.num_heads + kv_head) * dim, (shape.num_heads + shape.num_kv_heads + kv_head) * dim};
}

template <typename T>
void forward(const Tensor& qkv, const PackedBatch& batch, const AttentionShape& shape, const Attended& result) {
  const T* in = qkv.const_data_ptr<T>();
  T* out = result.out.mutable_data_ptr<T>();
  float* log_sum = result.log_sum.mutable_data_ptr<float>();
  const int64_t width = qkv.size(1), out_width = result.out.size(1), tokens = qkv.size(0);
  const int64_t group_size = shape.num_heads / shape.num_kv_heads;
  for_each_head(batch, shape, [&](const Head& head, int64_t start, int64_t kv_head) {
    std::vector<ForwardHead<T>> group;
    for (int64_t member = 0; member < group_size; ++member) {
      const Columns at = columns_of(shape, kv_head, member);
      const T* row = in + start * width;
      group.push_back({{row + at.q, width},
                       {row + at.k, width},
                       {row + at.v, width},
                       {out + start * out_width + at.q, out_width},
                       log_sum + (kv_head * group_size + member) * tokens + start});
    }
    attend(head, group);
  });
}

template <typename T>
void backward(const Tensor& dout, const Tensor& qkv, const Attended& saved, const PackedBatch& batch, const AttentionShape& shape,
              const Tensor& dqkv) {
  const T *in = qkv.const_data_ptr<T>(), *out = saved.out.const_data_ptr<T>(), *d = dout.const_data_ptr<T>();
  T* to = dqkv.mutable_data_ptr<T>();
  const float* log_sum = saved.log_sum.const_data_ptr<float>();
  const int64_t width = qkv.size(1), out_width = dout.size(1), tokens = qkv.size(0);
  const int64_t group_size = shape.num_heads / shape.num_kv_heads;
  for_each_head(batch, shape, [&](const Head& head, int64_t start, int64_t kv_head) {
    std::vector<BackwardHead<T>> group;
    for (int64_t member = 0; member < group_size; ++member) {
      const Columns at = columns_of(shape, kv_head, member);
      const T* row = in + start * width;
      T* gradient = to + start * width;
      const int64_t out_at = start * out_width + at.q;
      group.push_back({{row + at.q, width},
                       {row + at.k, width},
                       {row + at.v, width},
                       {out + out_at, out_width},
                       {d + out_at, out_width},
                       {gradient + at.q, width},
                       {gradient + at.k, width},
                       {gradient + at.v, width},
                       log_sum + (kv_head * group_size + member) * tokens + start});
    }
    attend_backward(head, group);
  });
}

}  // namespace

Attended attention(const Tensor& qkv, const PackedBatch& batch, const AttentionShape& shape) {
  Attended result{
      at::empty({qkv.size(0), shape.num_heads * shape.head_dim}, qkv.options()), at::empty({shape.num_heads, qkv.size(0)}, at::kFloat), {}};
  qkv.scalar_type() == at::kFloat ? forward<float>(qkv, batch, shape, result) : forward<at::BFloat16>(qkv, batch, shape, result);
  return result;
}

Tensor attention_backward(const Tensor& dout, const Tensor& qkv, const Attended& saved, const PackedBatch& batch,
                          const AttentionShape& shape) {
  Tensor dqkv = at::empty_like(qkv);
  qkv.scalar_type() == at::kFloat ? backward<float>(dout, qkv, saved, batch, shape, dqkv)
                                  : backward<at::BFloat16>(dout, qkv, saved, batch, shape, dqkv);
  return dqkv;
}

}  // namespace kedge::cpu
