#include "kedge/model/kernels/cpu_attention.h"

#include <algorithm>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>

#include "kedge/core/error.h"
#include "kedge/core/logarithm.h"
#include "kedge/model/kernels/cpu_attention_blocks.h"
#include "kedge/model/kernels/cpu_rows.h"

namespace kedge::cpu {
namespace {

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

// Calls set(j, q) for what a query from `first` on does not see of a block. Queries after the row's end are zeros and add nothing.
template <typename F>
void for_hidden(const Head& head, int64_t first, int64_t block, F&& set) {
  const int64_t from = head.window == 0 ? std::max<int64_t>(0, first + 1 - block * kKeys) : 0;  // the first query sees all before it
  for (int64_t j = from; j < head.num_keys(first, block); ++j)
    for (int64_t q = 0; q < kQueries; ++q)
      if (!head.sees(first + q, block * kKeys + j)) set(j, q);
}

// fp32 copies: of all rows, and of kQueries rows from `first` on times `scale`, by rows and by channels. What pads them stays zero.
template <typename T>
void copy_rows(const Rows<const T>& rows, const Head& head, float* out) {
  for (int64_t j = 0; j < head.length; ++j)
    for (int64_t d = 0; d < head.dim; ++d) out[j * head.padded_dim + d] = widen(rows.data[j * rows.stride + d]);
}
template <typename T>
void copy_queries(const Rows<const T>& rows, int64_t first, const Head& head, float scale, float* plain, float* turned) {
  const int64_t count = head.last_query(first) + 1 - first;
  if (count < kQueries) std::fill_n(plain, kQueries * head.padded_dim, 0.0F);
  for (int64_t q = 0; q < count; ++q)
    for (int64_t d = 0; d < head.dim; ++d) plain[q * head.padded_dim + d] = widen(rows.data[(first + q) * rows.stride + d]) * scale;
  for (int64_t d = 0; d < head.padded_dim; ++d)
    for (int64_t q = 0; q < kQueries; ++q) turned[d * kQueries + q] = plain[q * head.padded_dim + d];
}

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
template <typename T>
void attend(const Head& head, const std::vector<ForwardHead<T>>& group) {
  const int64_t dim = head.padded_dim;
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
      SoftmaxSoFar softmax;
      for (int64_t block = head.first_block(first); block <= head.last_query(first) / kKeys; ++block) {
        const int64_t num_keys = head.num_keys(first, block), from = block * kKeys * dim;
        score_block(queries, keys + from, num_keys, dim, scores);
        for_hidden(head, first, block, [&](int64_t j, int64_t q) { scores[j * kQueries + q] = kHidden; });
        fold_block(softmax, scores, num_keys, dim, out);
        mix_block(scores, values + from, num_keys, dim, out);
      }
      for (int64_t q = 0; first + q <= head.last_query(first); ++q) {
        const float sum = softmax.sum[q], share = 1.0F / sum;
        one.log_sum[first + q] = softmax.most[q] + binary_log(sum);
        for (int64_t d = 0; d < head.dim; ++d) store(one.out.data[(first + q) * one.out.stride + d], out[q * dim + d] * share);
      }
    }
}

template <typename T>
void attend(const Head& head, const std::vector<BackwardHead<T>>& group) {
  const int64_t dim = head.padded_dim;
  Scratch memory(head, 4);
  float *keys = memory.take(head.matrix_size()), *values = memory.take(head.matrix_size());
  float *dkeys = memory.take(head.matrix_size()), *dvalues = memory.take(head.matrix_size());
  float *queries = memory.take(kQueries * dim), *turned_queries = memory.take(kQueries * dim);
  float *douts = memory.take(kQueries * dim), *turned_douts = memory.take(kQueries * dim), *dqueries = memory.take(kQueries * dim);
  float* out = memory.take(dim);
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
        for (int64_t d = 0; d < head.dim; ++d) out[d] = widen(one.out.data[(first + q) * one.out.stride + d]);
        along[q] = product_sum(douts + q * dim, out, head.dim);
        log_sum[q] = one.log_sum[first + q];
      }
      for (int64_t block = head.first_block(first); block <= head.last_query(first) / kKeys; ++block) {
        const int64_t num_keys = head.num_keys(first, block), from = block * kKeys * dim;
        score_block(turned_queries, keys + from, num_keys, dim, probs);
        score_block(turned_douts, values + from, num_keys, dim, dscores);
        for_hidden(head, first, block, [&](int64_t j, int64_t q) { probs[j * kQueries + q] = kHidden; });
        score_gradient_block(log_sum, along, num_keys, probs, dscores);
        mix_block(dscores, keys + from, num_keys, dim, dqueries);
        spread_block(dscores, queries, num_keys, dim, dkeys + from);
        spread_block(probs, douts, num_keys, dim, dvalues + from);
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
