#pragma once
// Vectors of numbers, by the compiler's own types: as many side by side as a vector unit takes, and an exponential of them.
#include <cstdint>

namespace kedge::cpu {

// Numbers side by side, as many as a vector unit takes. Not one template: g++ 12 ignores the size where it depends on a parameter.
template <int64_t Bytes>
struct VectorTypes;
template <>
struct VectorTypes<16> {
  using Floats = float __attribute__((vector_size(16), aligned(4), may_alias));
  using Integers = int32_t __attribute__((vector_size(16), aligned(4), may_alias));
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
  using Halves = uint16_t __attribute__((vector_size(16), aligned(2), may_alias));

  [[gnu::always_inline]] static Floats widen(Halves x) {
    return reinterpret_cast<Floats>(__builtin_shufflevector(Halves{}, x, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
  }
};

// e^x in place of x, for x at most 88: the bits of exp_of in vector_sums.h. Several vectors go side by side, so that one is computed while
// another waits for its last step.
template <int64_t Bytes, int64_t N>
[[gnu::always_inline]] inline void to_exp(typename VectorTypes<Bytes>::Floats (&x)[N]) {
  using Floats = typename VectorTypes<Bytes>::Floats;
  using Integers = typename VectorTypes<Bytes>::Integers;
  const Floats least = Floats{} - 87.3F;
  Integers kept[N];
  Floats power[N], r[N], y[N];
  for (int64_t i = 0; i < N; ++i) kept[i] = x[i] >= least;
  for (int64_t i = 0; i < N; ++i) r[i] = kept[i] ? x[i] : least;
  for (int64_t i = 0; i < N; ++i) power[i] = (r[i] * 1.44269504F + 12582912.0F) - 12582912.0F;  // nearest integer
  for (int64_t i = 0; i < N; ++i) r[i] = r[i] - power[i] * 0.693359375F;
  for (int64_t i = 0; i < N; ++i) r[i] = r[i] - power[i] * -2.12194440e-4F;
  for (int64_t i = 0; i < N; ++i) y[i] = Floats{} + 1.9875691500e-4F;
  for (const float term : {1.3981999507e-3F, 8.3334519073e-3F, 4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F})
    for (int64_t i = 0; i < N; ++i) y[i] = y[i] * r[i] + term;
  for (int64_t i = 0; i < N; ++i) y[i] = y[i] * r[i] * r[i] + r[i] + 1.0F;
  for (int64_t i = 0; i < N; ++i) {
    const Integers exponent = (__builtin_convertvector(power[i], Integers) + 127) << 23;
    x[i] = y[i] * reinterpret_cast<Floats>(exponent & kept[i]);
  }
}

}  // namespace kedge::cpu
