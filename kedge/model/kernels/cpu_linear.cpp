#include "kedge/model/kernels/cpu_linear.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/core/simd.h"
#include "kedge/model/kernels/cpu_rows.h"
#include "kedge/model/kernels/cpu_shared_product.h"
#include "kedge/model/kernels/cpu_vectors.h"

// The instructions for bf16 are compiled for these functions alone: not every aarch64 CPU has them. clang 14 knows them only for a whole
// file.
#if defined(__aarch64__) && defined(__linux__) && !defined(__clang__)
#include <arm_neon.h>
#include <sys/auxv.h>
#define KEDGE_BF16 __attribute__((target("arch=armv8.2-a+bf16")))
#endif

namespace kedge::cpu {
namespace {

#if defined(__aarch64__)
using V = Vectors<16>;
using Vector = V::Floats;
constexpr int64_t kWidth = V::kWidth;

// Weight rows a task takes: with a few rows of x they fit into the first caches.
constexpr int64_t kTask = 16;
// Rows of x that meet a task's weights before the next task's are fetched.
constexpr int64_t kBatch = 128;

template <typename T>
struct LinearProduct {
  const T *x, *weight, *bias, *beside;
  T* out;
  int64_t rows, in, num_out;
};

KEDGE_INLINE void store_all(float* out, Vector x) { V::at(out) = x; }
// As `store` in cpu_rows.h.
KEDGE_INLINE void store_all(at::BFloat16* out, Vector x) {
  using Unsigned = uint32_t __attribute__((vector_size(16)));
  using AllHalves = uint16_t __attribute__((vector_size(16)));
  const auto bits = reinterpret_cast<Unsigned>(x), number = reinterpret_cast<Unsigned>(x == x);
  const Unsigned rounded = ((bits + 0x7FFFU + ((bits >> 16U) & 1U)) & number) | (0x7FC00000U & ~number);
  const auto halves = reinterpret_cast<AllHalves>(rounded);
  *reinterpret_cast<V::Halves*>(out) = __builtin_shufflevector(halves, halves, 1, 3, 5, 7);
}

// The sums of one row of x with one weight row, and with kWidth of them.
template <typename T>
KEDGE_INLINE void finish(const LinearProduct<T>& product, int64_t row, int64_t column, float sum) {
  const int64_t at = row * product.num_out + column;
  if (product.bias != nullptr) sum += widen(product.bias[column]);
  if (product.beside != nullptr) sum += widen(product.beside[at]);
  store(product.out[at], sum);
}
template <typename T>
KEDGE_INLINE void finish(const LinearProduct<T>& product, int64_t row, int64_t column, Vector sum) {
  const int64_t at = row * product.num_out + column;
  if (product.bias != nullptr) sum += V::load(product.bias + column);
  if (product.beside != nullptr) sum += V::load(product.beside + at);
  store_all(product.out + at, sum);
}

// sum + b[Lane] a, fused. Written out where it can be: g++ 12 loads the lanes one by one instead, and moves sums about.
template <int64_t Lane>
KEDGE_INLINE Vector add_product(Vector sum, Vector a, Vector b) {
#if defined(__aarch64__)
  asm volatile("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(sum) : "w"(a), "w"(b), "i"(Lane));
  return sum;
#else
  return sum + b[Lane] * a;
#endif
}

// Rows become columns.
KEDGE_INLINE void turn(Vector (&x)[kWidth]) {
  const Vector a = __builtin_shufflevector(x[0], x[2], 0, 4, 1, 5), b = __builtin_shufflevector(x[0], x[2], 2, 6, 3, 7);
  const Vector c = __builtin_shufflevector(x[1], x[3], 0, 4, 1, 5), d = __builtin_shufflevector(x[1], x[3], 2, 6, 3, 7);
  x[0] = __builtin_shufflevector(a, c, 0, 4, 1, 5), x[1] = __builtin_shufflevector(a, c, 2, 6, 3, 7);
  x[2] = __builtin_shufflevector(b, d, 0, 4, 1, 5), x[3] = __builtin_shufflevector(b, d, 2, 6, 3, 7);
}

// Products of fp32, and of bf16 on CPUs that cannot multiply it: every sum is a chain of fused multiplications and additions over the
// channels in order. The lanes of a vector are rows of x where there are many, and weight rows where there are few.
constexpr int64_t kGroup = 2 * kWidth;  // rows side by side where there are many

// The first `channels` numbers of a row, then zeros.
template <typename T>
KEDGE_INLINE Vector load_channels(const T* p, int64_t channels) {
  if (channels == kWidth) return V::load(p);
  Vector some = {};
  for (int64_t i = 0; i < channels; ++i) some[i] = widen(p[i]);
  return some;
}

// x transposed: for every kGroup rows [in][kGroup], zeros after the last row.
template <typename T>
KEDGE_INLINE void turn_rows(const LinearProduct<T>& product, Range rows, float* turned) {
  const int64_t in = product.in;
  for (int64_t row = rows.begin; row < rows.end; row += kGroup, turned += kGroup * in)
    for (int64_t half = 0; half < kGroup; half += kWidth)
      for (int64_t i = 0; i < in; i += kWidth) {
        const int64_t channels = std::min(kWidth, in - i);
        Vector block[kWidth] = {};
        for (int64_t r = 0; r < std::min(kWidth, rows.end - row - half); ++r)
          block[r] = load_channels(product.x + (row + half + r) * in + i, channels);
        turn(block);
        for (int64_t c = 0; c < channels; ++c) V::at(turned + (i + c) * kGroup + half) = block[c];
      }
}

// One channel of kGroup weight rows times that of kGroup rows of x.
template <int64_t Lane>
KEDGE_INLINE void add_channel(const Vector (&w)[kGroup], const float* x, Vector (&sum)[2][kGroup]) {
  for (int64_t half = 0; half < 2; ++half) {
    const Vector rows = V::at(x + Lane * kGroup + half * kWidth);
    for (int64_t c = 0; c < kGroup; ++c) sum[half][c] = add_product<Lane>(sum[half][c], rows, w[c]);
  }
}

// kGroup weight rows from `column` on with kGroup rows from `row` on, x their transposed numbers.
template <typename T>
KEDGE_INLINE void many_rows_tile(const LinearProduct<T>& product, int64_t column, int64_t row, const float* x) {
  const int64_t in = product.in, whole = in / kWidth * kWidth;
  const T* weight = product.weight + column * in;
  Vector sum[2][kGroup] = {};
  for (int64_t i = 0; i < whole; i += kWidth) {
    Vector w[kGroup];
    for (int64_t c = 0; c < kGroup; ++c) w[c] = V::load(weight + c * in + i);
    add_channel<0>(w, x + i * kGroup, sum);
    add_channel<1>(w, x + i * kGroup, sum);
    add_channel<2>(w, x + i * kGroup, sum);
    add_channel<3>(w, x + i * kGroup, sum);
  }
  for (int64_t i = whole; i < in; ++i)
    for (int64_t half = 0; half < 2; ++half) {
      const Vector rows = V::at(x + i * kGroup + half * kWidth);
      for (int64_t c = 0; c < kGroup; ++c) sum[half][c] = add_product<0>(sum[half][c], rows, Vector{} + widen(weight[c * in + i]));
    }
  for (int64_t c = 0; c < kGroup; c += kWidth)
    for (int64_t half = 0; half < 2; ++half) {
      Vector block[kWidth];
      for (int64_t i = 0; i < kWidth; ++i) block[i] = sum[half][c + i];
      turn(block);
      for (int64_t r = 0; r < std::min(kWidth, product.rows - row - half * kWidth); ++r)
        finish(product, row + half * kWidth + r, column + c, block[r]);
    }
}

// `Quads` times four weight rows from `column` on, or only `count` of the one quad, with `Rows` rows from `row` on.
template <int64_t Quads, int64_t Rows, typename T>
KEDGE_INLINE void few_rows_tile(const LinearProduct<T>& product, int64_t column, int64_t row, int64_t count = kWidth) {
  const int64_t in = product.in, whole = in / kWidth * kWidth;
  const T *weight = product.weight + column * in, *x = product.x + row * in;
  Vector sum[Quads][Rows] = {};
  const auto add = [&](int64_t i, int64_t channels) __attribute__((always_inline)) {
    Vector numbers[Rows];
    for (int64_t r = 0; r < Rows; ++r) numbers[r] = load_channels(x + r * in + i, channels);
    for (int64_t q = 0; q < Quads; ++q) {
      Vector w[kWidth];
      for (int64_t c = 0; c < kWidth; ++c)
        w[c] = load_channels(weight + (Quads == 1 ? std::min(c, count - 1) : q * kWidth + c) * in + i, channels);
      turn(w);
      for (int64_t r = 0; r < Rows; ++r) sum[q][r] = add_product<0>(sum[q][r], w[0], numbers[r]);
      for (int64_t r = 0; r < Rows; ++r) sum[q][r] = add_product<1>(sum[q][r], w[1], numbers[r]);
      for (int64_t r = 0; r < Rows; ++r) sum[q][r] = add_product<2>(sum[q][r], w[2], numbers[r]);
      for (int64_t r = 0; r < Rows; ++r) sum[q][r] = add_product<3>(sum[q][r], w[3], numbers[r]);
    }
  };
  for (int64_t i = 0; i < whole; i += kWidth) add(i, kWidth);
  if (whole < in) add(whole, in - whole);
  for (int64_t q = 0; q < Quads; ++q)
    for (int64_t r = 0; r < Rows; ++r) {
      if (count == kWidth) {
        finish(product, row + r, column + q * kWidth, sum[q][r]);
      } else {
        for (int64_t c = 0; c < count; ++c) finish(product, row + r, column + c, sum[q][r][c]);
      }
    }
}

template <int64_t Rows, typename T>
KEDGE_INLINE void few_rows(const LinearProduct<T>& product, Range columns, int64_t row) {
  constexpr int64_t kQuads = 4;
  int64_t column = columns.begin;
  for (; column + kQuads * kWidth <= columns.end; column += kQuads * kWidth) few_rows_tile<kQuads, Rows>(product, column, row);
  for (; column < columns.end; column += kWidth) few_rows_tile<1, Rows>(product, column, row, std::min(kWidth, columns.end - column));
}

template <typename T>
KEDGE_INLINE void few_rows(const LinearProduct<T>& product, Range columns, Range rows) {
  int64_t row = rows.begin;
  for (; row + 4 <= rows.end; row += 4) few_rows<4>(product, columns, row);
  switch (rows.end - row) {
    case 3:
      return few_rows<3>(product, columns, row);
    case 2:
      return few_rows<2>(product, columns, row);
    case 1:
      return few_rows<1>(product, columns, row);
    default:
      return;
  }
}

template <typename T>
KEDGE_INLINE void multiply_turned(const LinearProduct<T>& product, Range columns, Range rows, const float* x) {
  const int64_t whole = columns.begin + columns.size() / kGroup * kGroup;
  int64_t row = rows.begin;
  for (; row + kWidth < rows.end; row += kGroup, x += kGroup * product.in) {
    for (int64_t column = columns.begin; column < whole; column += kGroup) many_rows_tile(product, column, row, x);
    few_rows(product, {whole, columns.end}, {row, std::min(rows.end, row + kGroup)});
  }
  few_rows(product, columns, {row, std::max(row, rows.end)});
}

void multiply_columns(const LinearProduct<float>& product, Range columns, Range rows, const float* x) {
  multiply_turned(product, columns, rows, x);
}
void multiply_columns(const LinearProduct<at::BFloat16>& product, Range columns, Range rows, const float* x) {
  multiply_turned(product, columns, rows, x);
}

template <typename T>
struct PlainKernel {
  using Number = float;

  static int64_t arranged_size(int64_t rows, int64_t in) { return (rows + kGroup - 1) / kGroup * kGroup * in; }
  static void arrange(const LinearProduct<T>& product, Range rows, float* x) {
    if (rows.size() > kWidth) turn_rows(product, rows, x);
  }
  static void multiply(const LinearProduct<T>& product, Range columns, Range rows, const float* x) {
    multiply_columns(product, columns, rows, x);
  }
};

#if defined(KEDGE_BF16)
// Products of bf16 by the CPU's own instruction: 2x4 numbers times 4x2, added to 2x2 sums. The first sum of an output runs over channels
// 0-3 of every eight, the second over 4-7, and the two are added at the end.
constexpr int64_t kChunk = 8;

bool has_bf16() {
  static const bool found = (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0;
  return found;
}

int64_t num_chunks(int64_t in) { return (in + kChunk - 1) / kChunk; }

using Chunk = bfloat16x8_t;

KEDGE_INLINE KEDGE_BF16 Chunk load_chunk(const at::BFloat16* p, int64_t count) {
  alignas(16) uint16_t some[kChunk] = {};
  for (int64_t i = 0; i < count; ++i) some[i] = p[i].x;
  return vreinterpretq_bf16_u16(vld1q_u16(some));
}
KEDGE_INLINE KEDGE_BF16 Chunk load_chunk(const uint16_t* p) { return vreinterpretq_bf16_u16(vld1q_u16(p)); }
KEDGE_INLINE KEDGE_BF16 Chunk load_chunk(const at::BFloat16* p) { return load_chunk(reinterpret_cast<const uint16_t*>(p)); }
// Channels 0-3 of both, and 4-7.
KEDGE_INLINE KEDGE_BF16 Chunk lower(Chunk a, Chunk b) {
  return vreinterpretq_bf16_u64(vzip1q_u64(vreinterpretq_u64_bf16(a), vreinterpretq_u64_bf16(b)));
}
KEDGE_INLINE KEDGE_BF16 Chunk upper(Chunk a, Chunk b) {
  return vreinterpretq_bf16_u64(vzip2q_u64(vreinterpretq_u64_bf16(a), vreinterpretq_u64_bf16(b)));
}

// Rows two by two, kSide pairs in a panel: of every chunk `lower` of all pairs, then of every chunk `upper`. What is missing is zero.
constexpr int64_t kSide = 4;
KEDGE_BF16 void pair_rows(const at::BFloat16* rows, int64_t num_rows, int64_t in, uint16_t* paired) {
  const int64_t half = kSide * num_chunks(in) * kChunk;
  for (int64_t row = 0; row < num_rows; row += 2) {
    uint16_t* panel = paired + row / (2 * kSide) * 2 * half + row / 2 % kSide * kChunk;
    for (int64_t i = 0; i < in; i += kChunk, panel += kSide * kChunk) {
      const int64_t count = std::min(kChunk, in - i);
      const bool has_second = row + 1 < num_rows, whole = count == kChunk && has_second;
      const at::BFloat16 *first = rows + row * in + i, *second = first + (has_second ? in : 0);
      const Chunk a = whole ? load_chunk(first) : load_chunk(first, count);
      const Chunk b = whole ? load_chunk(second) : load_chunk(second, has_second ? count : 0);
      vst1q_u16(panel, vreinterpretq_u16_bf16(lower(a, b)));
      vst1q_u16(panel + half, vreinterpretq_u16_bf16(upper(a, b)));
    }
  }
}

// The last chunks of a tile's weight rows, filled up with zeros.
template <int64_t Count>
struct LastChunks {
  alignas(16) at::BFloat16 data[Count * kChunk] = {};

  KEDGE_INLINE LastChunks(const at::BFloat16* weight, int64_t in) {
    const int64_t from = in / kChunk * kChunk;
    for (int64_t c = 0; c < Count; ++c) std::copy_n(weight + c * in + from, in - from, data + c * kChunk);
  }
};

// One chunk of 2 `Columns` weight rows times one of 2 `Rows` paired rows of x.
template <int64_t Columns, int64_t Rows>
KEDGE_INLINE KEDGE_BF16 void add_pairs(const at::BFloat16* weight, int64_t in, const uint16_t* x, int64_t half,
                                       float32x4_t (&sum)[Columns][Rows][2]) {
  Chunk low[Columns], high[Columns];
  for (int64_t c = 0; c < Columns; ++c) {
    const Chunk a = load_chunk(weight + 2 * c * in), b = load_chunk(weight + (2 * c + 1) * in);
    low[c] = lower(a, b), high[c] = upper(a, b);
  }
  for (int64_t r = 0; r < Rows; ++r) {
    const Chunk x_low = load_chunk(x + r * kChunk), x_high = load_chunk(x + half + r * kChunk);
    for (int64_t c = 0; c < Columns; ++c) {
      sum[c][r][0] = vbfmmlaq_f32(sum[c][r][0], low[c], x_low);
      sum[c][r][1] = vbfmmlaq_f32(sum[c][r][1], high[c], x_high);
    }
  }
}

// Writes the sums of 2 `Columns` weight rows from `column` on with 2 `Rows` rows from `row` on.
template <int64_t Columns, int64_t Rows>
KEDGE_INLINE KEDGE_BF16 void finish_pairs(const LinearProduct<at::BFloat16>& product, int64_t column, int64_t row,
                                          const float32x4_t (&sum)[Columns][Rows][2]) {
  for (int64_t r = 0; r < Rows; ++r)
    for (int64_t c = 0; c < Columns; c += 2) {
      const Vector a = vaddq_f32(sum[c][r][0], sum[c][r][1]), b = vaddq_f32(sum[c + 1][r][0], sum[c + 1][r][1]);
      const int64_t first = row + 2 * r;
      if (first < product.rows) finish(product, first, column + 2 * c, Vector(__builtin_shufflevector(a, b, 0, 2, 4, 6)));
      if (first + 1 < product.rows) finish(product, first + 1, column + 2 * c, Vector(__builtin_shufflevector(a, b, 1, 3, 5, 7)));
    }
}

// Weights as stored.
template <int64_t Columns, int64_t Rows>
KEDGE_INLINE KEDGE_BF16 void pair_tile(const LinearProduct<at::BFloat16>& product, int64_t column, int64_t row, const uint16_t* x) {
  const int64_t in = product.in, half = kSide * num_chunks(in) * kChunk;
  const at::BFloat16* weight = product.weight + column * in;
  float32x4_t sum[Columns][Rows][2] = {};
  int64_t i = 0;
  for (; i + kChunk <= in; i += kChunk) add_pairs(weight + i, in, x + kSide * i, half, sum);
  if (i < in) add_pairs(LastChunks<2 * Columns>(weight, in).data, kChunk, x + kSide * i, half, sum);
  finish_pairs(product, column, row, sum);
}

// Weights paired too, where many rows of x share the work: first all lower halves, then all upper ones.
KEDGE_INLINE KEDGE_BF16 void square_tile(const LinearProduct<at::BFloat16>& product, int64_t column, int64_t row, const uint16_t* weight,
                                         const uint16_t* x) {
  const int64_t half = kSide * num_chunks(product.in) * kChunk;
  float32x4_t sum[kSide][kSide][2];
  for (int64_t which = 0; which < 2; ++which) {
    float32x4_t part[kSide][kSide] = {};
    const uint16_t *w_half = weight + which * half, *x_half = x + which * half;
    for (int64_t i = 0; i < half; i += kSide * kChunk) {
      Chunk w[kSide];
      for (int64_t c = 0; c < kSide; ++c) w[c] = load_chunk(w_half + i + c * kChunk);
      for (int64_t r = 0; r < kSide; ++r) {
        const Chunk rows = load_chunk(x_half + i + r * kChunk);
        for (int64_t c = 0; c < kSide; ++c) part[c][r] = vbfmmlaq_f32(part[c][r], w[c], rows);
      }
    }
    for (int64_t c = 0; c < kSide; ++c)
      for (int64_t r = 0; r < kSide; ++r) sum[c][r][which] = part[c][r];
  }
  finish_pairs(product, column, row, sum);
}

// One row of x alone: a chunk's two halves meet their own, and the other two of the 2x2 sums mean nothing.
template <int64_t Columns>
KEDGE_INLINE KEDGE_BF16 void add_single(const at::BFloat16* weight, int64_t in, Chunk x, float32x4_t (&sum)[Columns]) {
  for (int64_t c = 0; c < Columns; ++c) sum[c] = vbfmmlaq_f32(sum[c], load_chunk(weight + c * in), x);
}

template <int64_t Columns>
KEDGE_INLINE KEDGE_BF16 void single_tile(const LinearProduct<at::BFloat16>& product, int64_t column, int64_t row) {
  const int64_t in = product.in;
  const at::BFloat16 *weight = product.weight + column * in, *x = product.x + row * in;
  float32x4_t sum[Columns] = {};
  int64_t i = 0;
  for (; i + kChunk <= in; i += kChunk) add_single(weight + i, in, load_chunk(x + i), sum);
  if (i < in) add_single(LastChunks<Columns>(weight, in).data, kChunk, load_chunk(x + i, in - i), sum);
  for (int64_t c = 0; c < Columns; ++c) finish(product, row, column + c, sum[c][0] + sum[c][3]);
}

template <int64_t Columns, int64_t Rows>
KEDGE_INLINE KEDGE_BF16 void pair_columns(const LinearProduct<at::BFloat16>& product, Range columns, int64_t row, const uint16_t* x) {
  int64_t column = columns.begin;
  for (; column + 2 * Columns <= columns.end; column += 2 * Columns) pair_tile<Columns, Rows>(product, column, row, x);
  for (; column < columns.end; ++column)
    for (int64_t r = row; r < std::min(product.rows, row + 2 * Rows); ++r) single_tile<1>(product, column, r);
}

KEDGE_BF16 void multiply_single(const LinearProduct<at::BFloat16>& product, Range columns, int64_t row) {
  constexpr int64_t kColumns = 8;
  int64_t column = columns.begin;
  for (; column + kColumns <= columns.end; column += kColumns) single_tile<kColumns>(product, column, row);
  for (; column < columns.end; ++column) single_tile<1>(product, column, row);
}

KEDGE_BF16 void multiply_pairs(const LinearProduct<at::BFloat16>& product, Range columns, Range rows, const uint16_t* x) {
  const int64_t half = num_chunks(product.in) * kChunk;
  int64_t row = rows.begin;
  for (; row + 6 < rows.end; row += 8, x += 8 * half) pair_columns<2, 4>(product, columns, row, x);
  switch ((rows.end - row + 1) / 2) {
    case 3:
      return pair_columns<2, 3>(product, columns, row, x);
    case 2:
      return pair_columns<4, 2>(product, columns, row, x);
    case 1:
      return pair_columns<4, 1>(product, columns, row, x);
    default:
      return;
  }
}

// x ends with room for the rows that fill up the last tile.
KEDGE_BF16 void multiply_squares(const LinearProduct<at::BFloat16>& product, Range columns, Range rows, const uint16_t* x) {
  thread_local std::vector<uint16_t> paired;
  const int64_t half = num_chunks(product.in) * kChunk, whole = columns.size() / (2 * kSide) * (2 * kSide);
  paired.resize(static_cast<size_t>(kTask * half));
  pair_rows(product.weight + columns.begin * product.in, whole, product.in, paired.data());
  for (int64_t row = 0; row < rows.size(); row += 2 * kSide)
    for (int64_t column = 0; column < whole; column += 2 * kSide)
      square_tile(product, columns.begin + column, rows.begin + row, paired.data() + column * half, x + row * half);
  if (whole < columns.size()) multiply_pairs(product, {columns.begin + whole, columns.end}, rows, x);
}

struct PairKernel {
  using Number = uint16_t;
  static constexpr int64_t kManyRows = 24;  // from here on pairing the weights is faster

  static int64_t arranged_size(int64_t rows, int64_t in) {
    return (rows + 2 * kSide - 1) / (2 * kSide) * (2 * kSide) * num_chunks(in) * kChunk;
  }
  static void arrange(const LinearProduct<at::BFloat16>& product, Range rows, uint16_t* x) {
    if (rows.size() > 1) pair_rows(product.x + rows.begin * product.in, rows.size(), product.in, x);
  }
  static void multiply(const LinearProduct<at::BFloat16>& product, Range columns, Range rows, const uint16_t* x) {
    if (rows.size() == 1) return multiply_single(product, columns, rows.begin);
    rows.size() < kManyRows ? multiply_pairs(product, columns, rows, x) : multiply_squares(product, columns, rows, x);
  }
};
#endif

// Every thread packs the rows of x for itself: that is cheap compared with the products, and none waits for another.
template <typename Kernel, typename T>
void run(const LinearProduct<T>& product) {
  const int64_t num_tasks = (product.num_out + kTask - 1) / kTask;
  const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, kTask * product.rows * product.in));
  at::parallel_for(0, num_tasks, grain, [&](int64_t begin, int64_t end) {
    thread_local std::vector<typename Kernel::Number> arranged;
    const auto size = static_cast<size_t>(Kernel::arranged_size(std::min(kBatch, product.rows), product.in));
    if (arranged.size() < size) arranged.resize(size);
    for (int64_t row = 0; row < product.rows; row += kBatch) {
      const Range rows{row, std::min(product.rows, row + kBatch)};
      Kernel::arrange(product, rows, arranged.data());
      for (int64_t task = begin; task < end; ++task)
        Kernel::multiply(product, {task * kTask, std::min(product.num_out, (task + 1) * kTask)}, rows, arranged.data());
    }
  });
}

void run(const LinearProduct<float>& product) { run<PlainKernel<float>>(product); }
void run(const LinearProduct<at::BFloat16>& product) {
#if defined(KEDGE_BF16)
  if (has_bf16()) return run<PairKernel>(product);
#endif
  run<PlainKernel<at::BFloat16>>(product);
}

template <typename T>
void run_linear(const Tensor& x, const Tensor& weight, const Tensor& out, const LinearTerms& terms) {
  const auto data = [](const Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr<T>() : nullptr; };
  run(LinearProduct<T>{data(x), data(weight), data(terms.bias), data(terms.beside), out.mutable_data_ptr<T>(), x.size(0), x.size(1),
                       weight.size(0)});
}
#else
template <typename T>
void run_linear(const Tensor& x, const Tensor& weight, const Tensor& out, const LinearTerms& terms) {
  using Number = std::conditional_t<std::is_same_v<T, float>, float, uint16_t>;
  const auto data = [](const Tensor& tensor) {
    return tensor.defined() ? reinterpret_cast<const Number*>(tensor.const_data_ptr<T>()) : nullptr;
  };
  auto product =
      forward_product(data(x), data(weight), reinterpret_cast<Number*>(out.mutable_data_ptr<T>()), x.size(0), x.size(1), weight.size(0));
  product.bias = data(terms.bias), product.beside = data(terms.beside);
  run_shared(product);
}
#endif

}  // namespace

bool linear_suits(const Tensor& x, const Tensor& weight) {
  const bool known = x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16;
  return known && weight.scalar_type() == x.scalar_type() && !x.is_cuda() && x.dim() == 2 && x.is_contiguous() && weight.is_contiguous();
}

void linear(const Tensor& x, const Tensor& weight, const Tensor& out, const LinearTerms& terms) {
  ensure(x.size(1) == weight.size(1) && out.size(0) == x.size(0) && out.size(1) == weight.size(0), "shapes of a product");
  ensure(!terms.beside.defined() || (terms.beside.is_contiguous() && terms.beside.sizes() == out.sizes()), "shape of an added term");
  x.scalar_type() == at::kFloat ? run_linear<float>(x, weight, out, terms) : run_linear<at::BFloat16>(x, weight, out, terms);
}

}  // namespace kedge::cpu
