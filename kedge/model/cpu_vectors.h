#pragma once
// What the attentions of training and of decoding have in common on the CPU. A decoding step gets a trainer's bits only where both
// compute a score's power, hide a key and end a block of keys alike, so all of that stands here, once.
#include <cstdint>

#include <c10/util/BFloat16.h>

namespace kedge::cpu {

constexpr int64_t kKeys = 64;  // a block of them: the softmax is folded block by block
constexpr float kHidden = -1e30F, kNothingYet = -1e29F;
constexpr float kLog2E = 1.44269504F;

// Numbers side by side, as many as a vector unit takes. Not one template: g++ 12 ignores the size where it depends on a parameter.
template <int64_t Bytes>
struct VectorTypes;
template <>
struct VectorTypes<16> {
  using Floats = float __attribute__((vector_size(16), aligned(4), may_alias));
  using Integers = int32_t __attribute__((vector_size(16), aligned(4), may_alias));
  using Halves = uint16_t __attribute__((vector_size(8), aligned(2), may_alias));
};
template <>
struct VectorTypes<32> {
  using Floats = float __attribute__((vector_size(32), aligned(4), may_alias));
  using Integers = int32_t __attribute__((vector_size(32), aligned(4), may_alias));
  using Halves = uint16_t __attribute__((vector_size(16), aligned(2), may_alias));
};

template <int64_t Bytes>
struct Vectors {
  using Floats = typename VectorTypes<Bytes>::Floats;
  using Integers = typename VectorTypes<Bytes>::Integers;
  using Halves = typename VectorTypes<Bytes>::Halves;
  static constexpr int64_t kWidth = Bytes / 4;

  [[gnu::always_inline]] static Floats& at(float* p) { return *reinterpret_cast<Floats*>(p); }
  [[gnu::always_inline]] static const Floats& at(const float* p) { return *reinterpret_cast<const Floats*>(p); }

  [[gnu::always_inline]] static Floats load(const float* p) { return at(p); }
  [[gnu::always_inline]] static Floats load(const c10::BFloat16* p) {
    return reinterpret_cast<Floats>(__builtin_convertvector(*reinterpret_cast<const Halves*>(p), Integers) << 16);
  }

  // 2^x within two units in the last place, for x at most 0; 0 below -126. Scores are kept in powers of two because this is cheaper
  // than e^x.
  [[gnu::always_inline]] static Floats exp2_of(Floats x) {
    const Floats least = Floats{} - 126.0F;
    const Integers kept = x >= least;
    const Floats clamped = kept ? x : least;
    const Floats power = (clamped + 12582912.0F) - 12582912.0F;  // nearest integer
    const Floats r = clamped - power;
    Floats y = Floats{} + 1.5403530e-4F;
    y = y * r + 1.3333558e-3F;
    y = y * r + 9.6181291e-3F;
    y = y * r + 5.5504109e-2F;
    y = y * r + 2.4022651e-1F;
    y = y * r + 6.9314718e-1F;
    y = y * r + 1.0F;
    const Integers exponent = (__builtin_convertvector(power, Integers) + 127) << 23;
    return reinterpret_cast<Floats>(reinterpret_cast<Integers>(y * reinterpret_cast<Floats>(exponent)) & kept);
  }
};

}  // namespace kedge::cpu
