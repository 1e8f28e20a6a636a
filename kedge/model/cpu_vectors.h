#pragma once
// What the attentions of training and of decoding have in common on the CPU. A decoding step gets a trainer's bits only where both
// compute a score's power, hide a key and end a block of keys alike, so all of that stands here, once.
#include <cstdint>

#include <c10/util/BFloat16.h>

#include "kedge/core/vectors.h"

namespace kedge::cpu {

constexpr int64_t kKeys = 64;  // a block of them: the softmax is folded block by block
constexpr float kHidden = -1e30F, kNothingYet = -1e29F;
constexpr float kLog2E = 1.44269504F;

template <int64_t Bytes>
struct Vectors : VectorTypes<Bytes> {
  using Floats = typename VectorTypes<Bytes>::Floats;
  using Integers = typename VectorTypes<Bytes>::Integers;
  using Halves = typename VectorTypes<Bytes>::Halves;
  static constexpr int64_t kWidth = Bytes / 4;

  [[gnu::always_inline]] static Floats& at(float* p) { return *reinterpret_cast<Floats*>(p); }
  [[gnu::always_inline]] static const Floats& at(const float* p) { return *reinterpret_cast<const Floats*>(p); }

  [[gnu::always_inline]] static Floats load(const float* p) { return at(p); }
  [[gnu::always_inline]] static Floats load(const c10::BFloat16* p) {
    return VectorTypes<Bytes>::widen(*reinterpret_cast<const Halves*>(p));
  }

  // x, of which the compiler forgets how it came about: a product that is only later added to must be rounded first. Whether compilers
  // fuse the two would otherwise depend on the loops around them.
  [[gnu::always_inline]] static Floats rounded(Floats x) {
    asm("" : "+m"(x));
    return x;
  }

  // a where it is larger, else b. By masks: g++ 12 makes a dozen instructions of the conditional operator.
  [[gnu::always_inline]] static Floats larger(Floats a, Floats b) {
    const Integers chosen = a > b;
    return reinterpret_cast<Floats>((reinterpret_cast<Integers>(a) & chosen) | (reinterpret_cast<Integers>(b) & ~chosen));
  }

  // 2^x in place of x, within two units in the last place, for x at most 0; 0 below -126. Scores are kept in powers of two because this
  // is cheaper than e^x. Several vectors go side by side, so that one is computed while another waits for its last step.
  template <int64_t N>
  [[gnu::always_inline]] static void to_exp2(Floats (&x)[N]) {
    const Floats least = Floats{} - 126.0F;
    Integers kept[N];
    Floats power[N], r[N], y[N];
    for (int64_t i = 0; i < N; ++i) kept[i] = x[i] >= least;
    for (int64_t i = 0; i < N; ++i) r[i] = kept[i] ? x[i] : least;
    for (int64_t i = 0; i < N; ++i) power[i] = (r[i] + 12582912.0F) - 12582912.0F;  // nearest integer
    for (int64_t i = 0; i < N; ++i) r[i] = r[i] - power[i];
    for (int64_t i = 0; i < N; ++i) y[i] = Floats{} + 1.5403530e-4F;
    for (const float term : {1.3333558e-3F, 9.6181291e-3F, 5.5504109e-2F, 2.4022651e-1F, 6.9314718e-1F, 1.0F})
      for (int64_t i = 0; i < N; ++i) y[i] = y[i] * r[i] + term;
    for (int64_t i = 0; i < N; ++i) {
      const Integers exponent = (__builtin_convertvector(power[i], Integers) + 127) << 23;
      x[i] = reinterpret_cast<Floats>(reinterpret_cast<Integers>(y[i] * reinterpret_cast<Floats>(exponent)) & kept[i]);
    }
  }
  [[gnu::always_inline]] static Floats exp2_of(Floats x) {
    Floats one[1] = {x};
    to_exp2(one);
    return one[0];
  }
};

}  // namespace kedge::cpu
