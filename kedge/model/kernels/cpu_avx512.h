#pragma once
// What kernels of AVX-512 share: bf16 to fp32 and back, and squares of numbers turned. For sources on x86_64 alone, which include this
// after they have enabled the instructions for the compiler.
#include <immintrin.h>

#include <cstdint>

#include "kedge/core/simd.h"

namespace kedge::cpu::avx512 {

// bf16 is the upper half of a float.
KEDGE_INLINE __m512 widen(__m256i halves) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16)); }
// Round to nearest, ties to even; NaN stays NaN.
KEDGE_INLINE __m256i round_to_halves(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
  const __mmask16 is_number = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
  const __m512i kept = _mm512_mask_blend_epi32(is_number, _mm512_set1_epi32(0x7FC00000), rounded);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16));
}

// Four neighbours of a row, and of the rows 4, 8 and 12 after it, `stride` bytes apart.
KEDGE_INLINE __m512 load_quarters(const char* p, int64_t stride) {
  const auto at = [](const char* from) __attribute__((always_inline)) { return _mm_loadu_ps(reinterpret_cast<const float*>(from)); };
  __m512 x = _mm512_castps128_ps512(at(p));
  x = _mm512_insertf32x4(x, at(p + 4 * stride), 1);
  x = _mm512_insertf32x4(x, at(p + 8 * stride), 2);
  return _mm512_insertf32x4(x, at(p + 12 * stride), 3);
}
// Four columns of rows 0 to 3 of every quarter become four rows: what is left of a turn after loads that gather the quarters.
KEDGE_INLINE void store_turned(__m512 a, __m512 b, __m512 c, __m512 d, float* to, int64_t to_stride) {
  // With a mask of all: g++ 12 warns of its own header where there is none.
  constexpr __mmask16 kAll = 0xFFFF;
  const __m512 ab = _mm512_maskz_unpacklo_ps(kAll, a, b), cd = _mm512_maskz_unpacklo_ps(kAll, c, d);
  const __m512 ab_high = _mm512_maskz_unpackhi_ps(kAll, a, b), cd_high = _mm512_maskz_unpackhi_ps(kAll, c, d);
  _mm512_storeu_ps(to, _mm512_shuffle_ps(ab, cd, 0x44));
  _mm512_storeu_ps(to + to_stride, _mm512_shuffle_ps(ab, cd, 0xEE));
  _mm512_storeu_ps(to + 2 * to_stride, _mm512_shuffle_ps(ab_high, cd_high, 0x44));
  _mm512_storeu_ps(to + 3 * to_stride, _mm512_shuffle_ps(ab_high, cd_high, 0xEE));
}
// 16 rows of 16 four-byte numbers, `stride` bytes apart, become columns.
KEDGE_INLINE void turn_square(const char* from, int64_t stride, float* to, int64_t to_stride) {
  for (int64_t k = 0; k < 16; k += 4) {
    const char* p = from + k * 4;
    store_turned(load_quarters(p, stride), load_quarters(p + stride, stride), load_quarters(p + 2 * stride, stride),
                 load_quarters(p + 3 * stride, stride), to + k * to_stride, to_stride);
  }
}

}  // namespace kedge::cpu::avx512
