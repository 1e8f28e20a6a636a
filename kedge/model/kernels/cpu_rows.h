#pragma once
// Pieces of the CPU kernels: rows of numbers as fp32, whatever their type in memory.
#include <bit>
#include <cstdint>

#include <c10/util/BFloat16.h>

#include "kedge/core/vector_sums.h"

namespace kedge::cpu {

inline float widen(float x) { return x; }
inline float widen(c10::BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.x) << 16U); }

inline void store(float& out, float x) { out = x; }
// Round to nearest, ties to even; NaN stays NaN.
inline void store(c10::BFloat16& out, float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
  out.x = static_cast<uint16_t>(x == x ? rounded : 0x7FC0U);
}

}  // namespace kedge::cpu
