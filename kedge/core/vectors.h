#pragma once
// Vectors of numbers, by the compiler's own types: as many side by side as a vector unit takes, and their exponentials.
#include <cstdint>

namespace kedge::cpu {

// Numbers side by side, as many as a vector unit takes. Not one template: g++ 12 ignores the size where it depends on a parameter.
template <int64_t Bytes>
struct VectorTypes;
template <>
struct VectorTypes<16> {
  using Floats = float __attribute__((vector_size(16), aligned(4), may_alias));
  using Integers = int32_t __attribute__((vector_size(16), aligned(4), may_alias));
  using Bits = uint32_t __attribute__((vector_size(16), aligned(4), may_alias));
  using Halves = uint16_t __attribute__((vector_size(8), aligned(2), may_alias));

  // bf16 is the upper half of a float.
  [[gnu::always_inline]] static Floats widen(Halves x) {
    return reinterpret_cast<Floats>(__builtin_shufflevector(Halves{}, x, 0, 4, 1, 5, 2, 6, 3, 7));
  }
};
template <>
struct VectorTypes<32> {
  using Floats = float __attribute__((vector_size(32), aligned(4), may_alias));
  using Integers = int32_t __attribute__((vector_size(32), aligned(4), may_alias));
  using Bits = uint32_t __attribute__((vector_size(32), aligned(4), may_alias));
  using Halves = uint16_t __attribute__((vector_size(16), aligned(2), may_alias));

  [[gnu::always_inline]] static Floats widen(Halves x) {
    return reinterpret_cast<Floats>(__builtin_shufflevector(Halves{}, x, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
  }
};

// a where it is larger, else b. By masks: g++ 12 makes a dozen instructions of the conditional operator.
template <int64_t Bytes>
[[gnu::always_inline]] inline typename VectorTypes<Bytes>::Floats larger(typename VectorTypes<Bytes>::Floats a,
                                                                         typename VectorTypes<Bytes>::Floats b) {
  using Floats = typename VectorTypes<Bytes>::Floats;
  using Integers = typename VectorTypes<Bytes>::Integers;
  const Integers chosen = a > b;
  return reinterpret_cast<Floats>((reinterpret_cast<Integers>(a) & chosen) | (reinterpret_cast<Integers>(b) & ~chosen));
}

// Exponentials in place of x. Several vectors go side by side, so that one is computed while another waits for its last step. A number plus
// kInteger is rounded to an integer n, which is then in the lowest bits of the sum; shifted by 23 and added to the bits of a number
// around 1 it multiplies that by 2^n. What is too small for that is masked at the end.
constexpr float kInteger = 12582912.0F;

// 2^x within two units in the last place, for x at most 0; 0 below -126.
template <int64_t Bytes, int64_t N>
[[gnu::always_inline]] inline void to_exp2(typename VectorTypes<Bytes>::Floats (&x)[N]) {
  using Floats = typename VectorTypes<Bytes>::Floats;
  using Bits = typename VectorTypes<Bytes>::Bits;
  Bits kept[N], shift[N];
  Floats y[N];
  for (int64_t i = 0; i < N; ++i) {
    kept[i] = reinterpret_cast<Bits>(x[i] >= -126.0F);
    const Floats sum = x[i] + kInteger;
    shift[i] = reinterpret_cast<Bits>(sum) << 23;
    x[i] = x[i] - (sum - kInteger);
  }
  for (int64_t i = 0; i < N; ++i) y[i] = Floats{} + 1.5403530e-4F;
  for (const float term : {1.3333558e-3F, 9.6181291e-3F, 5.5504109e-2F, 2.4022651e-1F, 6.9314718e-1F, 1.0F})
    for (int64_t i = 0; i < N; ++i) y[i] = y[i] * x[i] + term;
  for (int64_t i = 0; i < N; ++i) x[i] = reinterpret_cast<Floats>((reinterpret_cast<Bits>(y[i]) + shift[i]) & kept[i]);
}

// e^x, for x at most 88: the bits of exp_of in vector_sums.h.
template <int64_t Bytes, int64_t N>
[[gnu::always_inline]] inline void to_exp(typename VectorTypes<Bytes>::Floats (&x)[N]) {
  using Floats = typename VectorTypes<Bytes>::Floats;
  using Bits = typename VectorTypes<Bytes>::Bits;
  Bits kept[N], shift[N];
  Floats power[N], y[N];
  for (int64_t i = 0; i < N; ++i) {
    kept[i] = reinterpret_cast<Bits>(x[i] >= -87.3F);
    const Floats sum = x[i] * 1.44269504F + kInteger;
    shift[i] = reinterpret_cast<Bits>(sum) << 23;
    power[i] = sum - kInteger;
  }
  for (int64_t i = 0; i < N; ++i) x[i] = x[i] - power[i] * 0.693359375F;
  for (int64_t i = 0; i < N; ++i) x[i] = x[i] - power[i] * -2.12194440e-4F;
  for (int64_t i = 0; i < N; ++i) y[i] = Floats{} + 1.9875691500e-4F;
  for (const float term : {1.3981999507e-3F, 8.3334519073e-3F, 4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F})
    for (int64_t i = 0; i < N; ++i) y[i] = y[i] * x[i] + term;
  for (int64_t i = 0; i < N; ++i) y[i] = y[i] * x[i] * x[i] + x[i] + 1.0F;
  for (int64_t i = 0; i < N; ++i) x[i] = reinterpret_cast<Floats>((reinterpret_cast<Bits>(y[i]) + shift[i]) & kept[i]);
}

}  // namespace kedge::cpu
