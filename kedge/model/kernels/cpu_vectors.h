#pragma once
// What the attentions of training and of decoding have in common on the CPU. A decoding step gets the bits of training only if both
// compute a score's power, mask a key and end a block of keys in the same way, so all of that is here, once.
#include <cstdint>

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
  template <typename Half>  // bf16, by whatever name
  [[gnu::always_inline]] static Floats load(const Half* p) {
    static_assert(sizeof(Half) == 2);
    return VectorTypes<Bytes>::widen(*reinterpret_cast<const Halves*>(p));
  }

  // x, opaque to the compiler: a product that is added to later must be rounded first. Whether compilers
  // fuse the two would otherwise depend on the loops around them.
  [[gnu::always_inline]] static Floats rounded(Floats x) {
    asm("" : "+m"(x));
    return x;
  }

  [[gnu::always_inline]] static Floats exp2_of(Floats x) {
    Floats one[1] = {x};
    to_exp2<Bytes>(one);
    return one[0];
  }
};

}  // namespace kedge::cpu
