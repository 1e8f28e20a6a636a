#include "kedge/model/kernels/cpu_products_units.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <utility>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#include "kedge/model/kernels/cpu_product_tiles.h"

namespace kedge::cpu {
namespace {

struct Avx2 {
  using Vector = __m256;
  static constexpr int64_t kWidth = 8, kRows = 6, kVectors = 2;

  KEDGE_INLINE static Vector zero() { return _mm256_setzero_ps(); }
  KEDGE_INLINE static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  KEDGE_INLINE static Vector load(const uint16_t* p) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  KEDGE_INLINE static void store(float* p, Vector x) { _mm256_storeu_ps(p, x); }
  // Round to nearest, ties to even; NaN stays NaN.
  KEDGE_INLINE static void store(uint16_t* p, Vector x) {
    const __m256i bits = _mm256_castps_si256(x), odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
    const __m256 is_number = _mm256_cmp_ps(x, x, _CMP_ORD_Q);
    const __m256 kept = _mm256_blendv_ps(_mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000)), _mm256_castsi256_ps(rounded), is_number);
    const __m256i high = _mm256_srli_epi32(_mm256_castps_si256(kept), 16);
    const __m256i pairs = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(pairs));
  }
  KEDGE_INLINE static float widen(float x) { return x; }
  KEDGE_INLINE static float widen(uint16_t x) { return __builtin_bit_cast(float, static_cast<uint32_t>(x) << 16U); }
  KEDGE_INLINE static Vector broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  KEDGE_INLINE static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  KEDGE_INLINE static Vector fused(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }

  // Rows become columns, 8 by 8: halves are gathered by the loads, what is left is a 4 by 4 turn in every half.
  KEDGE_INLINE static __m128 four(const float* p) { return _mm_loadu_ps(p); }
  KEDGE_INLINE static __m128 four(const uint16_t* p) {
    return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))), 16));
  }
  template <typename T>
  KEDGE_INLINE static __m256 halves(const T* p, int64_t stride) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(four(p)), four(p + 4 * stride), 1);
  }
  template <typename T>
  KEDGE_INLINE static void turn(const T* from, int64_t stride, float* to, int64_t to_stride) {
    for (int64_t k = 0; k < kWidth; k += 4) {
      const __m256 a = halves(from + k, stride), b = halves(from + stride + k, stride);
      const __m256 c = halves(from + 2 * stride + k, stride), d = halves(from + 3 * stride + k, stride);
      const __m256 ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d);
      const __m256 ab_high = _mm256_unpackhi_ps(a, b), cd_high = _mm256_unpackhi_ps(c, d);
      store(to + k * to_stride, _mm256_shuffle_ps(ab, cd, 0x44));
      store(to + (k + 1) * to_stride, _mm256_shuffle_ps(ab, cd, 0xEE));
      store(to + (k + 2) * to_stride, _mm256_shuffle_ps(ab_high, cd_high, 0x44));
      store(to + (k + 3) * to_stride, _mm256_shuffle_ps(ab_high, cd_high, 0xEE));
    }
  }
  template <int64_t Rows, int64_t Vectors, bool AlongRows>
  KEDGE_INLINE static void add_products(const TileTask& task, Vector (&sum)[Rows][Vectors]) {
    add_by_broadcast<Avx2, Rows, Vectors, AlongRows>(task, sum);
  }
};

}  // namespace

void multiply_avx2(const Product<float>& product, Range rows, Range columns) { Tiles<Avx2, float>::multiply(product, rows, columns); }
void multiply_avx2(const Product<uint16_t>& product, Range rows, Range columns) { Tiles<Avx2, uint16_t>::multiply(product, rows, columns); }

}  // namespace kedge::cpu

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
