#include "kedge/model/cpu_attention.h"

#include <algorithm>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>

#include "kedge/core/error.h"
#include "kedge/core/logarithm.h"
#include "kedge/core/simd.h"
#include "kedge/model/cpu_rows.h"
#include "kedge/model/cpu_vectors.h"

namespace kedge::cpu {
namespace {

using V = Vectors<KEDGE_VECTOR_BYTES>;
using Vector = V::Floats;
constexpr int64_t kWidth = V::kWidth;
constexpr int64_t kQueries = 8;  // taken together, side by side in vectors
constexpr int64_t kVectors = kQueries / kWidth;
constexpr int64_t kStep = 8;  // keys or channels in registers at a time

KEDGE_INLINE Vector& at(float* p) { return V::at(p); }
KEDGE_INLINE const Vector& at(const float* p) { return V::at(p); }
KEDGE_INLINE Vector exp2_of(Vector x) { return V::exp2_of(x); }

// scores[j][q] = sum over d of keys[j][d] queries[d][q]. keys [num_keys, rounded up to kStep][dim], queries [dim][kQueries].
KEDGE_INLINE void multiply(const float* queries, const float* keys, int64_t num_keys, int64_t dim, float* scores) {
  for (int64_t j = 0; j < num_keys; j += kStep) {
    Vector sum[kStep][kVectors] = {};
    for (int64_t d = 0; d < dim; d += kWidth) {
      Vector key[kStep];
      for (int64_t k = 0; k < kStep; ++k) key[k] = at(keys + (j + k) * dim + d);
      for (int64_t i = 0; i < kWidth; ++i)
        for (int64_t v = 0; v < kVectors; ++v) {
          const Vector query = at(queries + (d + i) * kQueries + v * kWidth);
          for (int64_t k = 0; k < kStep; ++k) sum[k][v] += key[k][i] * query;
        }
    }
    for (int64_t k = 0; k < kStep; ++k)
      for (int64_t v = 0; v < kVectors; ++v) at(scores + (j + k) * kQueries + v * kWidth) = sum[k][v];
  }
}

// out[q][d] += sum over j of weights[j][q] rows[j][d]. out [kQueries][dim].
KEDGE_INLINE void mix(const float* weights, const float* rows, int64_t num_keys, int64_t dim, float* out) {
  constexpr int64_t kPieces = kStep / kWidth;
  for (int64_t d = 0; d < dim; d += kStep) {
    Vector sum[kQueries][kPieces];
    for (int64_t q = 0; q < kQueries; ++q)
      for (int64_t p = 0; p < kPieces; ++p) sum[q][p] = at(out + q * dim + d + p * kWidth);
    for (int64_t j = 0; j < num_keys; ++j)
      for (int64_t p = 0; p < kPieces; ++p) {
        const Vector row = at(rows + j * dim + d + p * kWidth);
        for (int64_t v = 0; v < kVectors; ++v) {
          const Vector weight = at(weights + j * kQueries + v * kWidth);
          for (int64_t i = 0; i < kWidth; ++i) sum[v * kWidth + i][p] += weight[i] * row;
        }
      }
    for (int64_t q = 0; q < kQueries; ++q)
      for (int64_t p = 0; p < kPieces; ++p) at(out + q * dim + d + p * kWidth) = sum[q][p];
  }
}

// rows[j][d] += sum over q of weights[j][q] values[q][d]. values [kQueries][dim].
KEDGE_INLINE void spread(const float* weights, const float* values, int64_t num_keys, int64_t dim, float* rows) {
  for (int64_t d = 0; d < dim; d += kWidth) {
    Vector value[kQueries];
    for (int64_t q = 0; q < kQueries; ++q) value[q] = at(values + q * dim + d);
    for (int64_t j = 0; j < num_keys; ++j) {
      Vector even = at(rows + j * dim + d), odd = {};  // two sums, so that they need not wait for each other
      for (int64_t v = 0; v < kVectors; ++v) {
        const Vector weight = at(weights + j * kQueries + v * kWidth);
        for (int64_t i = 0; i < kWidth; i += 2) {
          even += weight[i] * value[v * kWidth + i];
          odd += weight[i + 1] * value[v * kWidth + i + 1];
        }
      }
      at(rows + j * dim + d) = even + odd;
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
  [[nodiscard]] int64_t matrix_size() const { return num_blocks() * kKeys * padded_dim; }
  [[nodiscard]] int64_t first_block(int64_t query) const { return window == 0 ? 0 : std::max<int64_t>(0, query - window + 1) / kKeys; }
  [[nodiscard]] int64_t last_query(int64_t first) const { return std::min(length, first + kQueries) - 1; }
  // How many keys of a block any of the queries from `first` on sees.
  [[nodiscard]] int64_t num_keys(int64_t first, int64_t block) const { return std::min(kKeys, last_query(first) + 1 - block * kKeys); }
  [[nodiscard]] bool sees(int64_t query, int64_t key) const { return key <= query && (window == 0 || key > query - window); }
};

// Calls set(j, q) for what a query from `first` on does not see of a block. Queries behind the row's end are zeros and add nothing.
template <typename F>
KEDGE_INLINE void for_hidden(const Head& head, int64_t first, int64_t block, F&& set) {
  const int64_t from = head.window == 0 ? std::max<int64_t>(0, first + 1 - block * kKeys) : 0;  // the first query sees all before it
  for (int64_t j = from; j < head.num_keys(first, block); ++j)
    for (int64_t q = 0; q < kQueries; ++q)
      if (!head.sees(first + q, block * kKeys + j)) set(j, q);
}

// fp32 copies: of all rows, and of kQueries rows from `first` on times `scale`, by rows and by channels. What pads them stays zero.
template <typename T>
KEDGE_INLINE void copy_rows(const Rows<const T>& rows, const Head& head, float* out) {
  for (int64_t j = 0; j < head.length; ++j)
    for (int64_t d = 0; d < head.dim; ++d) out[j * head.padded_dim + d] = widen(rows.data[j * rows.stride + d]);
}
template <typename T>
KEDGE_INLINE void copy_queries(const Rows<const T>& rows, int64_t first, const Head& head, float scale, float* plain, float* turned) {
  const int64_t count = head.last_query(first) + 1 - first;
  if (count < kQueries) std::fill_n(plain, kQueries * head.padded_dim, 0.0F);
  for (int64_t q = 0; q < count; ++q)
    for (int64_t d = 0; d < head.dim; ++d) plain[q * head.padded_dim + d] = widen(rows.data[(first + q) * rows.stride + d]) * scale;
  for (int64_t d = 0; d < head.padded_dim; ++d)
    for (int64_t q = 0; q < kQueries; ++q) turned[d * kQueries + q] = plain[q * head.padded_dim + d];
}

// The softmax so far of kQueries queries: their largest score, and the sum of powers over it.
struct Softmax {
  Vector most[kVectors], sum[kVectors];

  KEDGE_INLINE void start() {
    for (int64_t v = 0; v < kVectors; ++v) most[v] = Vector{} + kNothingYet, sum[v] = Vector{};
  }
  // Turns a block's scores into weights and scales `out` [kQueries][dim] to the new maximum. The vectors go side by side, so that
  // one waits for its sum while the other is computed.
  KEDGE_INLINE void fold(float* scores, int64_t num_keys, int64_t dim, float* out) {
    Vector now[kVectors], total[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) now[v] = most[v];
    for (int64_t j = 0; j < num_keys; ++j)
      for (int64_t v = 0; v < kVectors; ++v) {
        const Vector score = at(scores + j * kQueries + v * kWidth);
        now[v] = score > now[v] ? score : now[v];
      }
    for (int64_t v = 0; v < kVectors; ++v) {
      const Vector kept = exp2_of(most[v] - now[v]);
      total[v] = V::rounded(sum[v] * kept);
      for (int64_t i = 0; i < kWidth; ++i)
        if (kept[i] != 1.0F)
          for (int64_t d = 0; d < dim; d += kWidth) at(out + (v * kWidth + i) * dim + d) *= kept[i];
    }
    for (int64_t j = 0; j < num_keys; ++j)
      for (int64_t v = 0; v < kVectors; ++v) {
        Vector& score = at(scores + j * kQueries + v * kWidth);
        score = exp2_of(score - now[v]);
        total[v] += score;
      }
    for (int64_t v = 0; v < kVectors; ++v) most[v] = now[v], sum[v] = total[v];
  }
};

template <typename T>
struct ForwardHead {
  Rows<const T> q, k, v;
  Rows<T> out;
  float* log_sum;  // base 2
};

template <typename T>
struct BackwardHead {
  Rows<const T> q, k, v, out, dout;
  Rows<T> dq, dk, dv;
  const float* log_sum;
};

// Zeros that live until the next head of this thread.
class Scratch {
 public:
  Scratch(const Head& head, int64_t num_matrices) {
    thread_local std::vector<float> memory;
    memory.assign(static_cast<size_t>(num_matrices * head.matrix_size() + 8 * kQueries * (head.padded_dim + kKeys)), 0.0F);
    next_ = memory.data();
  }
  float* take(int64_t size) {
    float* taken = next_;
    next_ += size;
    return taken;
  }

 private:
  float* next_;
};

constexpr float kLn2 = 0.693147181F;

// All query heads of one key-value head.
template <int64_t Dim, typename T>
KEDGE_INLINE void attend_group(const Head& head, const std::vector<ForwardHead<T>>& group) {
  const int64_t dim = Dim > 0 ? Dim : head.padded_dim;
  Scratch memory(head, 2);
  float *keys = memory.take(head.matrix_size()), *values = memory.take(head.matrix_size());
  float *plain = memory.take(kQueries * dim), *queries = memory.take(kQueries * dim), *out = memory.take(kQueries * dim);
  float* scores = memory.take(kQueries * kKeys);
  copy_rows(group[0].k, head, keys);
  copy_rows(group[0].v, head, values);
  for (const ForwardHead<T>& one : group)
    for (int64_t first = 0; first < head.length; first += kQueries) {
      copy_queries(one.q, first, head, head.scale * kLog2E, plain, queries);
      std::fill_n(out, kQueries * dim, 0.0F);
      Softmax softmax;
      softmax.start();
      for (int64_t block = head.first_block(first); block <= head.last_query(first) / kKeys; ++block) {
        const int64_t num_keys = head.num_keys(first, block), from = block * kKeys * dim;
        multiply(queries, keys + from, num_keys, dim, scores);
        for_hidden(head, first, block, [&](int64_t j, int64_t q) { scores[j * kQueries + q] = kHidden; });
        softmax.fold(scores, num_keys, dim, out);
        mix(scores, values + from, num_keys, dim, out);
      }
      for (int64_t q = 0; first + q <= head.last_query(first); ++q) {
        const float sum = softmax.sum[q / kWidth][q % kWidth], share = 1.0F / sum;
        one.log_sum[first + q] = softmax.most[q / kWidth][q % kWidth] + binary_log(sum);
        for (int64_t d = 0; d < head.dim; ++d) store(one.out.data[(first + q) * one.out.stride + d], out[q * dim + d] * share);
      }
    }
}

// dscores = probs * (dprobs - along), probs = 2^(scores - log_sum), in place of scores and dprobs.
KEDGE_INLINE void score_gradients(const float* log_sum, const float* along, int64_t num_keys, float* probs, float* dscores) {
  for (int64_t v = 0; v < kVectors; ++v) {
    const Vector total = at(log_sum + v * kWidth), level = at(along + v * kWidth);
    for (int64_t j = 0; j < num_keys; ++j) {
      Vector &p = at(probs + j * kQueries + v * kWidth), &d = at(dscores + j * kQueries + v * kWidth);
      p = exp2_of(p - total);
      d = p * (d - level);
    }
  }
}

template <int64_t Dim, typename T>
KEDGE_INLINE void attend_group(const Head& head, const std::vector<BackwardHead<T>>& group) {
  const int64_t dim = Dim > 0 ? Dim : head.padded_dim;
  Scratch memory(head, 4);
  float *keys = memory.take(head.matrix_size()), *values = memory.take(head.matrix_size());
  float *dkeys = memory.take(head.matrix_size()), *dvalues = memory.take(head.matrix_size());
  float *queries = memory.take(kQueries * dim), *turned_queries = memory.take(kQueries * dim);
  float *douts = memory.take(kQueries * dim), *turned_douts = memory.take(kQueries * dim), *dqueries = memory.take(kQueries * dim);
  float *probs = memory.take(kQueries * kKeys), *dscores = memory.take(kQueries * kKeys);
  copy_rows(group[0].k, head, keys);
  copy_rows(group[0].v, head, values);
  for (const BackwardHead<T>& one : group)
    for (int64_t first = 0; first < head.length; first += kQueries) {
      copy_queries(one.q, first, head, head.scale * kLog2E, queries, turned_queries);
      copy_queries(one.dout, first, head, 1.0F, douts, turned_douts);
      std::fill_n(dqueries, kQueries * dim, 0.0F);
      float along[kQueries] = {}, log_sum[kQueries] = {};
      for (int64_t q = 0; first + q <= head.last_query(first); ++q) {
        const T* out = one.out.data + (first + q) * one.out.stride;
        along[q] = sum_of(head.dim, [&](int64_t d) { return douts[q * dim + d] * widen(out[d]); });
        log_sum[q] = one.log_sum[first + q];
      }
      for (int64_t block = head.first_block(first); block <= head.last_query(first) / kKeys; ++block) {
        const int64_t num_keys = head.num_keys(first, block), from = block * kKeys * dim;
        multiply(turned_queries, keys + from, num_keys, dim, probs);
        multiply(turned_douts, values + from, num_keys, dim, dscores);
        for_hidden(head, first, block, [&](int64_t j, int64_t q) { probs[j * kQueries + q] = kHidden; });
        score_gradients(log_sum, along, num_keys, probs, dscores);
        mix(dscores, keys + from, num_keys, dim, dqueries);
        spread(dscores, queries, num_keys, dim, dkeys + from);
        spread(probs, douts, num_keys, dim, dvalues + from);
      }
      for (int64_t q = 0; first + q <= head.last_query(first); ++q)
        for (int64_t d = 0; d < head.dim; ++d) store(one.dq.data[(first + q) * one.dq.stride + d], dqueries[q * dim + d] * head.scale);
    }
  for (int64_t j = 0; j < head.length; ++j)
    for (int64_t d = 0; d < head.dim; ++d) {
      store(group[0].dk.data[j * group[0].dk.stride + d], dkeys[j * dim + d] * kLn2);  // the queries were scaled by log2(e) too
      store(group[0].dv.data[j * group[0].dv.stride + d], dvalues[j * dim + d]);
    }
}

// The compiler knows the size of the usual heads.
template <typename Group>
KEDGE_INLINE void attend_sized(const Head& head, const Group& group) {
  switch (head.padded_dim) {
    case 16:
      return attend_group<16>(head, group);
    case 64:
      return attend_group<64>(head, group);
    default:
      return attend_group<0>(head, group);
  }
}

KEDGE_VECTOR_CLONES void attend(const Head& head, const std::vector<ForwardHead<float>>& group) { attend_sized(head, group); }
KEDGE_VECTOR_CLONES void attend(const Head& head, const std::vector<ForwardHead<at::BFloat16>>& group) { attend_sized(head, group); }
KEDGE_VECTOR_CLONES void attend(const Head& head, const std::vector<BackwardHead<float>>& group) { attend_sized(head, group); }
KEDGE_VECTOR_CLONES void attend(const Head& head, const std::vector<BackwardHead<at::BFloat16>>& group) { attend_sized(head, group); }

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
    attend(head, group);
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
