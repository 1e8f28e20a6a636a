#include "kedge/model/kernels/cpu_products_units.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <utility>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")
#endif
#include "kedge/model/kernels/cpu_avx512.h"
#include "kedge/model/kernels/cpu_product_tiles.h"

namespace kedge::cpu {
namespace {

struct Avx512 {
  using Vector = __m512;
  static constexpr int64_t kWidth = 16, kRows = 14, kVectors = 2;

  KEDGE_INLINE static Vector zero() { return _mm512_setzero_ps(); }
  KEDGE_INLINE static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  KEDGE_INLINE static Vector load(const uint16_t* p) { return avx512::widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  KEDGE_INLINE static void store(float* p, Vector x) { _mm512_storeu_ps(p, x); }
  KEDGE_INLINE static void store(uint16_t* p, Vector x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), avx512::round_to_halves(x)); }
  KEDGE_INLINE static float widen(float x) { return x; }
  KEDGE_INLINE static float widen(uint16_t x) { return __builtin_bit_cast(float, static_cast<uint32_t>(x) << 16U); }
  KEDGE_INLINE static Vector broadcast(const float* p) { return _mm512_set1_ps(*p); }
  KEDGE_INLINE static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  KEDGE_INLINE static Vector fused(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }

  // Rows become columns, 16 by 16: quarters are gathered by the loads, what is left is a 4 by 4 turn in every quarter.
  KEDGE_INLINE static void turn(const float* from, int64_t stride, float* to, int64_t to_stride) {
    avx512::turn_square(reinterpret_cast<const char*>(from), stride * 4, to, to_stride);
  }
  KEDGE_INLINE static void turn(const uint16_t* from, int64_t stride, float* to, int64_t to_stride) {
    for (int64_t k = 0; k < kWidth; k += 4) {
      const uint16_t* p = from + k;
      avx512::store_turned(quarters(p, stride), quarters(p + stride, stride), quarters(p + 2 * stride, stride),
                           quarters(p + 3 * stride, stride), to + k * to_stride, to_stride);
    }
  }
  KEDGE_INLINE static Vector quarters(const uint16_t* p, int64_t stride) {
    const auto half = [](const uint16_t* from) __attribute__((always_inline)) {
      return _mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))), 16);
    };
    __m512i x = _mm512_castsi128_si512(half(p));
    x = _mm512_inserti32x4(x, half(p + 4 * stride), 1);
    x = _mm512_inserti32x4(x, half(p + 8 * stride), 2);
    return _mm512_castsi512_ps(_mm512_inserti32x4(x, half(p + 12 * stride), 3));
  }
  // In groups every second row is multiplied straight from memory: that takes fewer instructions, of which the CPU starts four a cycle,
  // and all rows so would take more loads than it has ports for.
  template <int64_t Rows, int64_t Vectors>
  KEDGE_INLINE static void add_term(const float* a, const float* panel, Vector (&sum)[Rows][Vectors]) {
    Vector b[Vectors];
    for (int64_t v = 0; v < Vectors; ++v) b[v] = load(panel + v * kWidth);
    for (int64_t m = 0; m < Rows; ++m) {
      if (m % 2 == 1) {
        for (int64_t v = 0; v < Vectors; ++v) asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum[m][v]) : "v"(b[v]), "m"(a[m]));
      } else {
        const Vector x = broadcast(a + m);
        for (int64_t v = 0; v < Vectors; ++v) sum[m][v] = fused(x, b[v], sum[m][v]);
      }
    }
  }
  template <int64_t Rows, int64_t Vectors, bool AlongRows>
  KEDGE_INLINE static void add_products(const TileTask& task, Vector (&sum)[Rows][Vectors]) {
    if constexpr (AlongRows) {
      add_by_broadcast<Avx512, Rows, Vectors, AlongRows>(task, sum);
    } else {
      constexpr int64_t kPanel = kVectors * kWidth, kGroup = kGroupOf<Avx512>, kTogether = 4;
      const float *a = task.a, *panel = task.panel;
      int64_t k = 0;
      for (; k + kTogether <= task.depth; k += kTogether, a += kTogether * kGroup, panel += kTogether * kPanel) {
        fetch_ahead(task, k);
#pragma GCC unroll 4
        for (int64_t ahead = 0; ahead < kTogether; ++ahead) add_term(a + ahead * kGroup, panel + ahead * kPanel, sum);
      }
      for (; k < task.depth; ++k, a += kGroup, panel += kPanel) add_term(a, panel, sum);
    }
  }
};

}  // namespace

void multiply_avx512(const Product<float>& product, Range rows, Range columns) { Tiles<Avx512, float>::multiply(product, rows, columns); }
void multiply_avx512(const Product<uint16_t>& product, Range rows, Range columns) {
  Tiles<Avx512, uint16_t>::multiply(product, rows, columns);
}

}  // namespace kedge::cpu

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
