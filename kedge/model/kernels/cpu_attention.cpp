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
  int64_t begin, length;  // the row's own tokens are [begin, length): those before are of the prompt that it continues
  int64_t dim, padded_dim, window;
  float scale;

  [[nodiscard]] int64_t num_own() const { return length - begin; }
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

// fp32 copies: of `count` rows, and of kQueries rows from query `first` on times `scale`, by rows and by channels. What pads them stays
// zero.
template <typename T>
void copy_rows(const Rows<const T>& rows, int64_t count, const Head& head, float* out) {
  for (int64_t j = 0; j < count; ++j)
    for (int64_t d = 0; d < head.dim; ++d) out[j * head.padded_dim + d] = widen(rows.data[j * rows.stride + d]);
}
template <typename T>
void copy_queries(const Rows<const T>& rows, int64_t first, const Head& head, float scale, float* plain, float* turned) {
  const int64_t count = head.last_query(first) + 1 - first;
  const T* from = rows.data + (first - head.begin) * rows.stride;
  if (count < kQueries) std::fill_n(plain, kQueries * head.padded_dim, 0.0F);
  for (int64_t q = 0; q < count; ++q)
    for (int64_t d = 0; d < head.dim; ++d) plain[q * head.padded_dim + d] = widen(from[q * rows.stride + d]) * scale;
  for (int64_t d = 0; d < head.padded_dim; ++d)
    for (int64_t q = 0; q < kQueries; ++q) turned[d * kQueries + q] = plain[q * head.padded_dim + d];
}

// Of a row's own tokens, the first of which is query `begin`.
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

// All query heads of one key-value head. `prompt` is where the keys and values before the row's own are; unused if there are none.
template <typename T>
void attend(const Head& head, const std::vector<ForwardHead<T>>& group, const ForwardHead<T>& prompt) {
  const int64_t dim = head.padded_dim;
  Scratch memory(head, 2);
  float *keys = memory.take(head.matrix_size()), *values = memory.take(head.matrix_size());
  float *plain = memory.take(kQueries * dim), *queries = memory.take(kQueries * dim), *out = memory.take(kQueries * dim);
  float* scores = memory.take(kQueries * kKeys);
  copy_rows(prompt.k, head.begin, head, keys);
  copy_rows(prompt.v, head.begin, head, values);
  copy_rows(group[0].k, head.num_own(), head, keys + head.begin * dim);
  copy_rows(group[0].v, head.num_own(), head, values + head.begin * dim);
  for (const ForwardHead<T>& one : group)
    for (int64_t first = head.begin; first < head.length; first += kQueries) {
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
        const int64_t own = first + q - head.begin;
        one.log_sum[own] = softmax.most[q] + binary_log(sum);
        for (int64_t d = 0; d < head.dim; ++d) store(one.out.data[own * one.out.stride + d], out[q * dim + d] * share);
      }
    }
}

// The memory of a backward pass: a prompt's and an answer's keys, values and their gradients, and those of a few queries.
struct BackwardMemory {
  explicit BackwardMemory(const Head& longest) : memory(longest, 4) {
    for (float** matrix : {&keys, &values, &dkeys, &dvalues}) *matrix = memory.take(longest.matrix_size());
    for (float** rows : {&queries, &turned_queries, &douts, &turned_douts, &dqueries}) *rows = memory.take(kQueries * longest.padded_dim);
    out = memory.take(longest.padded_dim);
    probs = memory.take(kQueries * kKeys), dscores = memory.take(kQueries * kKeys);
  }

  Scratch memory;
  float *keys, *values, *dkeys, *dvalues, *queries, *turned_queries, *douts, *turned_douts, *dqueries, *out, *probs, *dscores;
};

// The gradients of one head's queries, and what they add to those of keys and values.
template <typename T>
void attend_queries(const Head& head, const BackwardHead<T>& one, const BackwardMemory& at) {
  const int64_t dim = head.padded_dim;
  for (int64_t first = head.begin; first < head.length; first += kQueries) {
    copy_queries(one.q, first, head, head.scale * kLog2E, at.queries, at.turned_queries);
    copy_queries(one.dout, first, head, 1.0F, at.douts, at.turned_douts);
    std::fill_n(at.dqueries, kQueries * dim, 0.0F);
    float along[kQueries] = {}, log_sum[kQueries] = {};
    const int64_t own = first - head.begin;
    for (int64_t q = 0; first + q <= head.last_query(first); ++q) {
      for (int64_t d = 0; d < head.dim; ++d) at.out[d] = widen(one.out.data[(own + q) * one.out.stride + d]);
      along[q] = product_sum(at.douts + q * dim, at.out, head.dim);
      log_sum[q] = one.log_sum[own + q];
    }
    for (int64_t block = head.first_block(first); block <= head.last_query(first) / kKeys; ++block) {
      const int64_t num_keys = head.num_keys(first, block), from = block * kKeys * dim;
      score_block(at.turned_queries, at.keys + from, num_keys, dim, at.probs);
      score_block(at.turned_douts, at.values + from, num_keys, dim, at.dscores);
      for_hidden(head, first, block, [&](int64_t j, int64_t q) { at.probs[j * kQueries + q] = kHidden; });
      score_gradient_block(log_sum, along, num_keys, at.probs, at.dscores);
      mix_block(at.dscores, at.keys + from, num_keys, dim, at.dqueries);
      spread_block(at.dscores, at.queries, num_keys, dim, at.dkeys + from);
      spread_block(at.probs, at.douts, num_keys, dim, at.dvalues + from);
    }
    for (int64_t q = 0; first + q <= head.last_query(first); ++q)
      for (int64_t d = 0; d < head.dim; ++d) store(one.dq.data[(own + q) * one.dq.stride + d], at.dqueries[q * dim + d] * head.scale);
  }
}

// The gradients of a row's own keys and values, when all queries have added to them.
template <typename T>
void store_keys(const Head& head, const BackwardHead<T>& one, const BackwardMemory& from) {
  const int64_t dim = head.padded_dim;
  for (int64_t j = 0; j < head.num_own(); ++j)
    for (int64_t d = 0; d < head.dim; ++d) {
      const int64_t at = (head.begin + j) * dim + d;
      store(one.dk.data[j * one.dk.stride + d], from.dkeys[at] * kLn2);  // the queries were scaled by log2(e) too
      store(one.dv.data[j * one.dv.stride + d], from.dvalues[at]);
    }
}

// All rows of a family, one after the other: so that the sums of the prompt's keys and values have one order. `heads_of(row)` gives the
// query heads of a row.
template <typename T, typename F>
void attend_family(Head head, const RowFamily& family, F&& heads_of) {
  int64_t longest = 0;
  for (const RowSpan& answer : family.answers) longest = std::max(longest, answer.length);
  head.begin = 0, head.length = family.first.length + longest;
  const BackwardMemory memory(head);
  const auto add = [&](const std::vector<BackwardHead<T>>& group) {
    copy_rows(group[0].k, head.num_own(), head, memory.keys + head.begin * head.padded_dim);
    copy_rows(group[0].v, head.num_own(), head, memory.values + head.begin * head.padded_dim);
    for (const BackwardHead<T>& one : group) attend_queries(head, one, memory);
  };
  head.length = family.first.length;
  const Head prompt = head;
  const std::vector<BackwardHead<T>> first = heads_of(family.first);
  add(first);
  for (const RowSpan& answer : family.answers) {
    head.begin = prompt.length, head.length = prompt.length + answer.length;
    for (float* sums : {memory.dkeys, memory.dvalues})
      std::fill_n(sums + head.begin * head.padded_dim, head.num_own() * head.padded_dim, 0.0F);
    const std::vector<BackwardHead<T>> group = heads_of(answer);
    add(group);
    store_keys(head, group[0], memory);
  }
  store_keys(prompt, first[0], memory);
}

// Calls work(item, kv head) for every item and kv head, on all threads.
template <typename Item, typename F>
void for_each_head(const std::vector<Item>& items, const AttentionShape& shape, F&& work) {
  at::parallel_for(0, std::ssize(items) * shape.num_kv_heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) work(items[static_cast<size_t>(task / shape.num_kv_heads)], task % shape.num_kv_heads);
  });
}

Head head_of(const AttentionShape& shape) {
  const int64_t padded_dim = (shape.head_dim + kStep - 1) / kStep * kStep;
  return {0, 0, shape.head_dim, padded_dim, shape.window, static_cast<float>(shape.scale())};
}

// A row and the prompt that it continues, which may be empty.
struct PromptedRow {
  RowSpan own, prompt;
};
std::vector<PromptedRow> prompted_rows(const PackedBatch& batch) {
  std::vector<PromptedRow> rows;
  for (const RowFamily& family : row_families(batch)) {
    rows.push_back({family.first, {}});
    for (const RowSpan& answer : family.answers) rows.push_back({answer, family.first});
  }
  return rows;
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
  for_each_head(prompted_rows(batch), shape, [&](const PromptedRow& row, int64_t kv_head) {
    const auto head_at = [&](int64_t start, int64_t member) -> ForwardHead<T> {
      const Columns at = columns_of(shape, kv_head, member);
      const T* from = in + start * width;
      return {{from + at.q, width},
              {from + at.k, width},
              {from + at.v, width},
              {out + start * out_width + at.q, out_width},
              log_sum + (kv_head * group_size + member) * tokens + start};
    };
    Head head = head_of(shape);
    head.begin = row.prompt.length, head.length = row.prompt.length + row.own.length;
    std::vector<ForwardHead<T>> group;
    for (int64_t member = 0; member < group_size; ++member) group.push_back(head_at(row.own.start, member));
    attend(head, group, head_at(row.prompt.start, 0));
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
  for_each_head(row_families(batch), shape, [&](const RowFamily& family, int64_t kv_head) {
    attend_family<T>(head_of(shape), family, [&](const RowSpan& span) {
      std::vector<BackwardHead<T>> group;
      for (int64_t member = 0; member < group_size; ++member) {
        const Columns at = columns_of(shape, kv_head, member);
        const T* row = in + span.start * width;
        T* gradient = to + span.start * width;
        const int64_t out_at = span.start * out_width + at.q;
        group.push_back({{row + at.q, width},
                         {row + at.k, width},
                         {row + at.v, width},
                         {out + out_at, out_width},
                         {d + out_at, out_width},
                         {gradient + at.q, width},
                         {gradient + at.k, width},
                         {gradient + at.v, width},
                         log_sum + (kv_head * group_size + member) * tokens + span.start});
      }
      return group;
    });
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
