#include "kedge/model/kernels/cpu_products_units.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <utility>
#include <vector>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")
#endif
#include "kedge/model/kernels/cpu_product_tiles.h"

namespace kedge::cpu {
namespace {

struct Avx512 {
  using Vector = __m512;
  static constexpr int64_t kWidth = 16, kRows = 14, kVectors = 2;

  KEDGE_INLINE static Vector zero() { return _mm512_setzero_ps(); }
  KEDGE_INLINE static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  KEDGE_INLINE static Vector load(const uint16_t* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  KEDGE_INLINE static void store(float* p, Vector x) { _mm512_storeu_ps(p, x); }
  // Round to nearest, ties to even; NaN stays NaN.
  KEDGE_INLINE static void store(uint16_t* p, Vector x) {
    const __m512i bits = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
    const __mmask16 is_number = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
    const __m512i kept = _mm512_mask_blend_epi32(is_number, _mm512_set1_epi32(0x7FC00000), rounded);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16)));
  }
  KEDGE_INLINE static float widen(float x) { return x; }
  KEDGE_INLINE static float widen(uint16_t x) { return __builtin_bit_cast(float, static_cast<uint32_t>(x) << 16U); }
  KEDGE_INLINE static Vector broadcast(const float* p) { return _mm512_set1_ps(*p); }
  KEDGE_INLINE static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  KEDGE_INLINE static Vector fused(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }

  // Rows become columns, 16 by 16: quarters are gathered by the loads, what is left is a 4 by 4 turn in every quarter.
  KEDGE_INLINE static __m512 quarters(const float* p, int64_t stride) {
    __m512 x = _mm512_castps128_ps512(_mm_loadu_ps(p));
    x = _mm512_insertf32x4(x, _mm_loadu_ps(p + 4 * stride), 1);
    x = _mm512_insertf32x4(x, _mm_loadu_ps(p + 8 * stride), 2);
    return _mm512_insertf32x4(x, _mm_loadu_ps(p + 12 * stride), 3);
  }
  KEDGE_INLINE static __m512 quarters(const uint16_t* p, int64_t stride) {
    const auto half = [](const uint16_t* from) __attribute__((always_inline)) {
      return _mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))), 16);
    };
    __m512i x = _mm512_castsi128_si512(half(p));
    x = _mm512_inserti32x4(x, half(p + 4 * stride), 1);
    x = _mm512_inserti32x4(x, half(p + 8 * stride), 2);
    return _mm512_castsi512_ps(_mm512_inserti32x4(x, half(p + 12 * stride), 3));
  }
  template <typename T>
  KEDGE_INLINE static void turn(const T* from, int64_t stride, float* to, int64_t to_stride) {
    for (int64_t k = 0; k < kWidth; k += 4) {
      const __m512 a = quarters(from + k, stride), b = quarters(from + stride + k, stride);
      const __m512 c = quarters(from + 2 * stride + k, stride), d = quarters(from + 3 * stride + k, stride);
      const __m512 ab = _mm512_unpacklo_ps(a, b), cd = _mm512_unpacklo_ps(c, d);
      const __m512 ab_high = _mm512_unpackhi_ps(a, b), cd_high = _mm512_unpackhi_ps(c, d);
      store(to + k * to_stride, _mm512_shuffle_ps(ab, cd, 0x44));
      store(to + (k + 1) * to_stride, _mm512_shuffle_ps(ab, cd, 0xEE));
      store(to + (k + 2) * to_stride, _mm512_shuffle_ps(ab_high, cd_high, 0x44));
      store(to + (k + 3) * to_stride, _mm512_shuffle_ps(ab_high, cd_high, 0xEE));
    }
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
