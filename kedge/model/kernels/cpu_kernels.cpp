#include "kedge/model/kernels/cpu_kernels.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/Parallel.h>

#include "kedge/core/error.h"
#include "kedge/core/logarithm.h"
#include "kedge/core/simd.h"
#include "kedge/model/kernels/cpu_rows.h"

namespace kedge::cpu {
namespace {

// Rows a task should take so that it is worth starting.
int64_t grain(int64_t row_size) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, row_size)); }

template <typename F>
void with_type(const Tensor& tensor, F&& f) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return f(float{});
    case at::kBFloat16:
      return f(at::BFloat16{});
    default:
      ensure(false, "a CPU kernel for ", c10::toString(tensor.scalar_type()));
  }
}

template <typename T>
const T* data(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<T>() : nullptr;
}
template <typename T>
T* mutable_data(const Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<T>() : nullptr;
}

// `ivdep` tells the compiler what it cannot see in inlined calls: the arrays of a row overlap nowhere, or element by element.
struct RowStats {
  float mean, rstd;
};

template <typename T>
[[gnu::always_inline]] inline RowStats norm_stats(const T* x, int64_t n, bool centred, float eps) {
  const float mean = centred ? sum_of(n, [&](int64_t i) { return widen(x[i]); }) / static_cast<float>(n) : 0.0F;
  const float square = sum_of(n, [&](int64_t i) {
    const float d = widen(x[i]) - mean;
    return d * d;
  });
  return {mean, 1.0F / std::sqrt(square / static_cast<float>(n) + eps)};
}

template <typename T>
[[gnu::always_inline]] inline void norm_row(const T* x, const T* w, const T* b, RowStats stats, int64_t n, T* out) {
  if (b == nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) store(out[i], (widen(x[i]) - stats.mean) * stats.rstd * widen(w[i]));
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) store(out[i], (widen(x[i]) - stats.mean) * stats.rstd * widen(w[i]) + widen(b[i]));
  }
}

// One row's gradient; adds the weight's and the bias's to dw and db.
template <typename T>
[[gnu::always_inline]] inline void norm_row_backward(const T* dout, const T* x, const T* w, RowStats stats, bool centred, int64_t n,
                                                     const T* beside, T* dx, float* dw, float* db) {
  const auto hat = [&](int64_t i) { return (widen(x[i]) - stats.mean) * stats.rstd; };
  const auto n_inverse = 1.0F / static_cast<float>(n);
  const float along = sum_of(n, [&](int64_t i) { return widen(dout[i]) * widen(w[i]) * hat(i); }) * n_inverse;
  const float level = centred ? sum_of(n, [&](int64_t i) { return widen(dout[i]) * widen(w[i]); }) * n_inverse : 0.0F;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dw[i] += widen(dout[i]) * hat(i);
  if (db != nullptr)
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) db[i] += widen(dout[i]);
  if (beside == nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) store(dx[i], (widen(dout[i]) * widen(w[i]) - level - hat(i) * along) * stats.rstd);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) store(dx[i], (widen(dout[i]) * widen(w[i]) - level - hat(i) * along) * stats.rstd + widen(beside[i]));
  }
}

[[gnu::always_inline]] inline float sigmoid(float x) { return 1.0F / (1.0F + exp_of(-x)); }

template <typename T>
[[gnu::always_inline]] inline void silu_gate_row(const T* gate, const T* up, int64_t n, T* out) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) store(out[i], widen(gate[i]) * sigmoid(widen(gate[i])) * widen(up[i]));
}

template <typename T>
[[gnu::always_inline]] inline void silu_gate_row_backward(const T* dout, const T* gate, const T* up, int64_t n, T* dgate, T* dup, T* out) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float g = widen(gate[i]), u = widen(up[i]), d = widen(dout[i]);
    const float s = sigmoid(g);
    const float silu = g * s;
    store(out[i], silu * u);
    store(dup[i], d * silu);
    store(dgate[i], d * u * (s + silu * (1.0F - s)));
  }
}

// Channel i turns with channel i + half. Of two products that are added only one can be fused: this fixes which.
template <typename T>
[[gnu::always_inline]] inline void rotate_head(T* x, const float* cos, const float* sin, int64_t half, float direction) {
#pragma GCC ivdep
  for (int64_t i = 0; i < half; ++i) {
    const float a = widen(x[i]), b = widen(x[i + half]), s = sin[i] * direction;
    store(x[i], __builtin_fmaf(a, cos[i], -(b * s)));
    store(x[i + half], __builtin_fmaf(b, cos[i], a * s));
  }
}

template <typename T>
[[gnu::always_inline]] inline void add_row(float* to, const T* from, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] += widen(from[i]);
}

// Adds the sums of columns [begin, end) to `to`. Blocks of rows are summed first: a long sum would lose the last bits of every later row.
template <typename T>
[[gnu::always_inline]] inline void add_sums(const T* rows, int64_t num_rows, int64_t width, int64_t begin, int64_t end, float* to) {
  constexpr int64_t kColumns = 64, kRows = 256;
  for (int64_t column = begin; column < end; column += kColumns)
    for (int64_t first = 0; first < num_rows; first += kRows) {
      const int64_t count = std::min(kColumns, end - column);
      float sums[kColumns] = {};
      for (int64_t r = first; r < std::min(num_rows, first + kRows); ++r) add_row(sums, rows + r * width + column, count);
      add_row(to + column, sums, count);
    }
}

struct LogitRow {
  float log_sum, entropy;
};

// How a logit is read: as it is, or divided by a temperature. A quotient cannot be fused with what is done to it, so that sampling, which
// divides in a loop of its own, gets the same bits.
struct AsIs {
  template <typename T>
  [[gnu::always_inline]] float operator()(const T& logit) const {
    return widen(logit);
  }
};
struct Divided {
  float by;

  template <typename T>
  [[gnu::always_inline]] float operator()(const T& logit) const {
    return widen(logit) / by;
  }
};

template <typename T, typename Read>
[[gnu::always_inline]] inline LogitRow logit_row(const T* logits, int64_t n, bool with_entropy, Read read) {
  const float most = max_of(n, [&](int64_t i) { return read(logits[i]); });
  const float sum = sum_of(n, [&](int64_t i) { return exp_of(read(logits[i]) - most); });
  const float log_sum = natural_log(sum);
  LogitRow row{most + log_sum, 0.0F};
  if (with_entropy) {
    const float mean = sum_of(n, [&](int64_t i) { return exp_of(read(logits[i]) - most) * (read(logits[i]) - most); }) / sum;
    row.entropy = log_sum - mean;
  }
  return row;
}

// In place.
template <typename T, typename Read>
[[gnu::always_inline]] inline void logit_gradient_row(T* x, int64_t n, float log_sum, float entropy, float dlogprob, float dentropy,
                                                      Read read) {
  if (dentropy == 0.0F) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) store(x[i], -dlogprob * exp_of(read(x[i]) - log_sum));
    return;
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float logp = read(x[i]) - log_sum;
    store(x[i], -exp_of(logp) * (dlogprob + dentropy * (logp + entropy)));
  }
}

// The loops over rows, one function per type so that each can be cloned.
#define KEDGE_ROWS(T)                                                                                                                     \
  KEDGE_VECTOR_CLONES void norm_rows(const T* x, const T* w, const T* b, int64_t begin, int64_t end, int64_t n, bool centred, bool known, \
                                     float eps, float* mean, float* rstd, T* out) {                                                       \
    for (int64_t r = begin; r < end; ++r) {                                                                                               \
      if (!known) {                                                                                                                       \
        const RowStats stats = norm_stats(x + r * n, n, centred, eps);                                                                    \
        rstd[r] = stats.rstd;                                                                                                             \
        if (centred) mean[r] = stats.mean;                                                                                                \
      }                                                                                                                                   \
      norm_row(x + r * n, w, b, {centred ? mean[r] : 0.0F, rstd[r]}, n, out + r * n);                                                     \
    }                                                                                                                                     \
  }                                                                                                                                       \
  KEDGE_VECTOR_CLONES void norm_rows_backward(const T* dout, const T* x, const T* w, int64_t begin, int64_t end, int64_t n, bool centred, \
                                              const float* mean, const float* rstd, const T* beside, T* dx, float* dw, float* db) {       \
    for (int64_t r = begin; r < end; ++r)                                                                                                 \
      norm_row_backward(dout + r * n, x + r * n, w, {centred ? mean[r] : 0.0F, rstd[r]}, centred, n,                                      \
                        beside == nullptr ? nullptr : beside + r * n, dx + r * n, dw, db);                                                \
  }                                                                                                                                       \
  KEDGE_VECTOR_CLONES void gate_rows(const T* gate_up, int64_t begin, int64_t end, int64_t n, T* out) {                                   \
    for (int64_t r = begin; r < end; ++r) silu_gate_row(gate_up + 2 * r * n, gate_up + (2 * r + 1) * n, n, out + r * n);                  \
  }                                                                                                                                       \
  KEDGE_VECTOR_CLONES void gate_rows_backward(const T* dout, const T* gate_up, int64_t begin, int64_t end, int64_t n, T* dgate_up,        \
                                              T* out) {                                                                                   \
    for (int64_t r = begin; r < end; ++r)                                                                                                 \
      silu_gate_row_backward(dout + r * n, gate_up + 2 * r * n, gate_up + (2 * r + 1) * n, n, dgate_up + 2 * r * n,                       \
                             dgate_up + (2 * r + 1) * n, out + r * n);                                                                    \
  }                                                                                                                                       \
  KEDGE_VECTOR_CLONES void rotate_rows(T* x, const float* cos, const float* sin, int64_t begin, int64_t end, int64_t width,               \
                                       int64_t num_heads, int64_t head_dim, int64_t half, float direction) {                              \
    for (int64_t r = begin; r < end; ++r)                                                                                                 \
      for (int64_t head = 0; head < num_heads; ++head)                                                                                    \
        rotate_head(x + r * width + head * head_dim, cos + r * half, sin + r * half, half, direction);                                    \
  }                                                                                                                                       \
  KEDGE_VECTOR_CLONES void add_columns(float* table, const int64_t* ids, const T* rows, int64_t num_rows, int64_t width, int64_t begin,   \
                                       int64_t end) {                                                                                     \
    for (int64_t r = 0; r < num_rows; ++r) add_row(table + ids[r] * width + begin, rows + r * width + begin, end - begin);                \
  }                                                                                                                                       \
  KEDGE_VECTOR_CLONES void add_column_sums(const T* rows, int64_t num_rows, int64_t width, int64_t begin, int64_t end, float* to) {       \
    add_sums(rows, num_rows, width, begin, end, to);                                                                                      \
  }                                                                                                                                       \
  KEDGE_VECTOR_CLONES void stats_rows(const T* logits, const int64_t* targets, int64_t begin, int64_t end, int64_t n, float temperature,  \
                                      float* logprob, float* log_sum, float* entropy) {                                                   \
    for (int64_t r = begin; r < end; ++r) {                                                                                               \
      const T* from = logits + r * n;                                                                                                     \
      const bool divides = temperature != 1.0F;                                                                                           \
      const LogitRow row =                                                                                                                \
          divides ? logit_row(from, n, entropy != nullptr, Divided{temperature}) : logit_row(from, n, entropy != nullptr, AsIs{});        \
      log_sum[r] = row.log_sum;                                                                                                           \
      logprob[r] = (divides ? Divided{temperature}(from[targets[r]]) : widen(from[targets[r]])) - row.log_sum;                            \
      if (entropy != nullptr) entropy[r] = row.entropy;                                                                                   \
    }                                                                                                                                     \
  }                                                                                                                                       \
  KEDGE_VECTOR_CLONES void gradient_rows(T* logits, const int64_t* targets, const float* log_sum, const float* entropy,                   \
                                         const float* dlogprob, const float* dentropy, int64_t begin, int64_t end, int64_t n,             \
                                         float temperature) {                                                                             \
    for (int64_t r = begin; r < end; ++r) {                                                                                               \
      const float d = dlogprob[r] / temperature, e = dentropy == nullptr ? 0.0F : dentropy[r] / temperature;                              \
      const float h = entropy == nullptr ? 0.0F : entropy[r];                                                                             \
      temperature != 1.0F ? logit_gradient_row(logits + r * n, n, log_sum[r], h, d, e, Divided{temperature})                              \
                          : logit_gradient_row(logits + r * n, n, log_sum[r], h, d, e, AsIs{});                                           \
      if (targets[r] >= 0) store(logits[r * n + targets[r]], widen(logits[r * n + targets[r]]) + d);                                      \
    }                                                                                                                                     \
  }
KEDGE_ROWS(float)
KEDGE_ROWS(at::BFloat16)
#undef KEDGE_ROWS

void norm(const Tensor& x, const NormWeights& weights, Normed& saved) {
  const int64_t rows = x.size(0), n = x.size(1);
  const bool centred = weights.kind == NormKind::layer, known = saved.rstd.defined();
  if (!known) {
    saved.rstd = at::empty({rows}, at::kFloat);
    if (centred) saved.mean = at::empty({rows}, at::kFloat);
  }
  saved.out = at::empty_like(x);
  with_type(x, [&](auto type) {
    using T = decltype(type);
    const auto *in = data<T>(x), *w = data<T>(weights.weight), *b = data<T>(weights.bias);
    auto *mean = mutable_data<float>(saved.mean), *rstd = mutable_data<float>(saved.rstd);
    auto* out = mutable_data<T>(saved.out);
    at::parallel_for(0, rows, grain(n), [&](int64_t begin, int64_t end) {
      norm_rows(in, w, b, begin, end, n, centred, known, static_cast<float>(weights.eps), mean, rstd, out);
    });
  });
}

void norm_backward(const Tensor& dout, const Tensor& x, const Normed& saved, const NormWeights& weights, const Tensor& beside,
                   const Tensor& dx) {
  const int64_t rows = x.size(0), n = x.size(1);
  // The weights' gradients are summed over fixed blocks of rows, then over the blocks in order: the number of threads changes nothing.
  constexpr int64_t kBlock = 256;
  const int64_t num_blocks = (rows + kBlock - 1) / kBlock;
  const Tensor dw = at::zeros({num_blocks, n}, at::kFloat);
  const Tensor db = weights.bias.defined() ? at::zeros({num_blocks, n}, at::kFloat) : Tensor();
  with_type(x, [&](auto type) {
    using T = decltype(type);
    const auto *d = data<T>(dout), *in = data<T>(x), *w = data<T>(weights.weight), *add = data<T>(beside);
    const auto *mean = data<float>(saved.mean), *rstd = data<float>(saved.rstd);
    auto* out = mutable_data<T>(dx);
    auto *dw_all = mutable_data<float>(dw), *db_all = mutable_data<float>(db);
    at::parallel_for(0, num_blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block)
        norm_rows_backward(d, in, w, block * kBlock, std::min(rows, (block + 1) * kBlock), n, weights.kind == NormKind::layer, mean, rstd,
                           add, out, dw_all + block * n, db_all == nullptr ? nullptr : db_all + block * n);
    });
  });
  if (weights.weight_gradient.defined()) add_row_sums(weights.weight_gradient, dw);
  if (weights.bias_gradient.defined()) add_row_sums(weights.bias_gradient, db);
}

void silu_gate(const Tensor& gate_up, const Tensor& out) {
  const int64_t rows = out.size(0), n = out.size(1);
  with_type(out, [&](auto type) {
    using T = decltype(type);
    const auto* in = data<T>(gate_up);
    auto* to = mutable_data<T>(out);
    at::parallel_for(0, rows, grain(n), [&](int64_t begin, int64_t end) { gate_rows(in, begin, end, n, to); });
  });
}

void silu_gate_backward(const Tensor& dout, const Tensor& gate_up, const Tensor& dgate_up, const Tensor& out) {
  const int64_t rows = out.size(0), n = out.size(1);
  with_type(out, [&](auto type) {
    using T = decltype(type);
    const auto *d = data<T>(dout), *in = data<T>(gate_up);
    auto *dgu = mutable_data<T>(dgate_up), *to = mutable_data<T>(out);
    at::parallel_for(0, rows, grain(n), [&](int64_t begin, int64_t end) { gate_rows_backward(d, in, begin, end, n, dgu, to); });
  });
}

void rotate(const Tensor& x, const Rotation& rotation, bool backwards) {
  const int64_t rows = x.size(0), width = x.size(1);
  with_type(x, [&](auto type) {
    using T = decltype(type);
    auto* at_x = mutable_data<T>(x);
    const auto *cos = data<float>(rotation.cos), *sin = data<float>(rotation.sin);
    at::parallel_for(0, rows, grain(width), [&](int64_t begin, int64_t end) {
      rotate_rows(at_x, cos, sin, begin, end, width, rotation.num_heads, rotation.head_dim, rotation.dim / 2, backwards ? -1.0F : 1.0F);
    });
  });
}

void logit_stats(const Tensor& logits, const Tensor& targets, LogitStats& stats) {
  const int64_t n = logits.size(1);
  with_type(logits, [&](auto type) {
    using T = decltype(type);
    const auto* in = data<T>(logits);
    const auto* ids = data<int64_t>(targets);
    // They come from files and calls, and the loops below read and write wherever they point to.
    ensure(std::all_of(ids, ids + targets.numel(), [&](int64_t id) { return id >= 0 && id < n; }), "a target outside the ", n, " logits");
    auto *logprob = mutable_data<float>(stats.logprob), *log_sum = mutable_data<float>(stats.log_sum);
    auto* entropy = mutable_data<float>(stats.entropy);
    const auto temperature = static_cast<float>(stats.temperature);
    at::parallel_for(0, logits.size(0), grain(n),
                     [&](int64_t begin, int64_t end) { stats_rows(in, ids, begin, end, n, temperature, logprob, log_sum, entropy); });
  });
}

}  // namespace

const OpKernels kernels = {norm, norm_backward, silu_gate, silu_gate_backward, rotate, logit_stats};

void add_rows(const Tensor& table, const Tensor& ids, const Tensor& rows) {
  const int64_t width = table.size(1);
  with_type(rows, [&](auto type) {
    using T = decltype(type);
    auto* to = mutable_data<float>(table);
    const auto* from = data<T>(rows);
    const auto* at_ids = data<int64_t>(ids);
    // Threads share the columns, so that every sum runs over the rows in order.
    at::parallel_for(0, width, 64, [&](int64_t begin, int64_t end) { add_columns(to, at_ids, from, rows.size(0), width, begin, end); });
  });
}

void add_row_sums(const Tensor& sums, const Tensor& rows) {
  const int64_t width = rows.size(1);
  with_type(rows, [&](auto type) {
    using T = decltype(type);
    auto* to = mutable_data<float>(sums);
    const auto* from = data<T>(rows);
    at::parallel_for(0, width, 64, [&](int64_t begin, int64_t end) { add_column_sums(from, rows.size(0), width, begin, end, to); });
  });
}

void logit_gradient_(const Tensor& logits, const Tensor& targets, const LogitStats& stats, const Tensor& dlogprob, const Tensor& dentropy) {
  const int64_t n = logits.size(1);
  with_type(logits, [&](auto type) {
    using T = decltype(type);
    auto* x = mutable_data<T>(logits);
    const auto* ids = data<int64_t>(targets);
    const auto *log_sum = data<float>(stats.log_sum), *entropy = data<float>(stats.entropy);
    const auto *dlogp = data<float>(dlogprob), *dent = data<float>(dentropy);
    const auto temperature = static_cast<float>(stats.temperature);
    at::parallel_for(0, logits.size(0), grain(n),
                     [&](int64_t begin, int64_t end) { gradient_rows(x, ids, log_sum, entropy, dlogp, dent, begin, end, n, temperature); });
  });
}

}  // namespace kedge::cpu
