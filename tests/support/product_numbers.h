#pragma once
// Numbers for tests of products: random ones, and bf16 as bits.
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kedge/core/random.h"

namespace kedge::cpu {

inline std::vector<float> normals(int64_t count, uint64_t stream) {
  const Random random(7, stream);
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(random.normal(static_cast<uint64_t>(i))));
  return numbers;
}

// bf16 is the upper half of a float.
inline std::vector<uint16_t> halves(const std::vector<float>& numbers) {
  std::vector<uint16_t> result;
  for (const float x : numbers) result.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16U));
  return result;
}
inline float widened(uint16_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16U); }
inline uint16_t rounded(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>(std::isnan(x) ? 0x7FC0U : (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

}  // namespace kedge::cpu
