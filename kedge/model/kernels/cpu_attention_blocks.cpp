#include "kedge/model/kernels/cpu_attention_blocks.h"

#include "kedge/core/simd.h"
#include "kedge/core/vector_sums.h"

namespace kedge::cpu {
namespace {

using V = Vectors<KEDGE_VECTOR_BYTES>;
using Vector = V::Floats;
constexpr int64_t kWidth = V::kWidth;
constexpr int64_t kVectors = kQueries / kWidth;

KEDGE_INLINE Vector& at(float* p) { return V::at(p); }
KEDGE_INLINE const Vector& at(const float* p) { return V::at(p); }

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

// Calls work(dim); the compiler knows the size of the usual heads.
template <typename F>
KEDGE_INLINE void with_dim(int64_t dim, F&& work) {
  switch (dim) {
    case 16:
      return work(int64_t{16});
    case 64:
      return work(int64_t{64});
    default:
      return work(dim);
  }
}

}  // namespace

KEDGE_VECTOR_CLONES void score_block(const float* queries, const float* keys, int64_t num_keys, int64_t dim, float* scores) {
  with_dim(
      dim, [&](int64_t size) __attribute__((always_inline)) { multiply(queries, keys, num_keys, size, scores); });
}

KEDGE_VECTOR_CLONES void mix_block(const float* weights, const float* rows, int64_t num_keys, int64_t dim, float* out) {
  with_dim(
      dim, [&](int64_t size) __attribute__((always_inline)) { mix(weights, rows, num_keys, size, out); });
}

KEDGE_VECTOR_CLONES void spread_block(const float* weights, const float* values, int64_t num_keys, int64_t dim, float* rows) {
  with_dim(
      dim, [&](int64_t size) __attribute__((always_inline)) { spread(weights, values, num_keys, size, rows); });
}

// The vectors go side by side, so that one waits for its sum while the other is computed.
KEDGE_VECTOR_CLONES void fold_block(SoftmaxSoFar& softmax, float* scores, int64_t num_keys, int64_t dim, float* out) {
  Vector now[kVectors], total[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) now[v] = at(&softmax.most[v * kWidth]);
  for (int64_t j = 0; j < num_keys; ++j)
    for (int64_t v = 0; v < kVectors; ++v) {
      const Vector score = at(scores + j * kQueries + v * kWidth);
      now[v] = score > now[v] ? score : now[v];
    }
  for (int64_t v = 0; v < kVectors; ++v) {
    const Vector kept = V::exp2_of(at(&softmax.most[v * kWidth]) - now[v]);
    total[v] = V::rounded(at(&softmax.sum[v * kWidth]) * kept);
    for (int64_t i = 0; i < kWidth; ++i)
      if (kept[i] != 1.0F)
        for (int64_t d = 0; d < dim; d += kWidth) at(out + (v * kWidth + i) * dim + d) *= kept[i];
  }
  for (int64_t j = 0; j < num_keys; ++j)
    for (int64_t v = 0; v < kVectors; ++v) {
      Vector& score = at(scores + j * kQueries + v * kWidth);
      score = V::exp2_of(score - now[v]);
      total[v] += score;
    }
  for (int64_t v = 0; v < kVectors; ++v) at(&softmax.most[v * kWidth]) = now[v], at(&softmax.sum[v * kWidth]) = total[v];
}

KEDGE_VECTOR_CLONES void score_gradient_block(const float* log_sum, const float* along, int64_t num_keys, float* probs, float* dscores) {
  for (int64_t v = 0; v < kVectors; ++v) {
    const Vector total = at(log_sum + v * kWidth), level = at(along + v * kWidth);
    for (int64_t j = 0; j < num_keys; ++j) {
      Vector &p = at(probs + j * kQueries + v * kWidth), &d = at(dscores + j * kQueries + v * kWidth);
      p = V::exp2_of(p - total);
      d = p * (d - level);
    }
  }
}

KEDGE_VECTOR_CLONES float product_sum(const float* a, const float* b, int64_t size) {
  return sum_of(size, [&](int64_t i) { return a[i] * b[i]; });
}

}  // namespace kedge::cpu
