#pragma once
// Sums, maxima and an exponential over rows of numbers, written so that compilers vectorise them. The order of every sum is fixed, so code
// that uses these gets the same bits: for example training and sampling log-probabilities. Independent of tensors.
#include <bit>
#include <cstdint>

namespace kedge::cpu {

// e^x within two units in the last place; 0 below -87.3, the largest finite power above 88.
[[gnu::always_inline]] inline float exp_of(float x) {
  constexpr float kOneOverLn2 = 1.44269504F, kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F, kRound = 12582912.0F;
  const float above = x < -87.3F ? -87.3F : x;
  const float clamped = above > 88.0F ? 88.0F : above;
  const float power = (clamped * kOneOverLn2 + kRound) - kRound;  // nearest integer
  float r = clamped - power * kLn2High;
  r = r - power * kLn2Low;
  float y = 1.9875691500e-4F;
  y = y * r + 1.3981999507e-3F;
  y = y * r + 8.3334519073e-3F;
  y = y * r + 4.1665795894e-2F;
  y = y * r + 1.6666665459e-1F;
  y = y * r + 5.0000001201e-1F;
  y = y * r * r + r + 1.0F;
  const auto scale = static_cast<uint32_t>(static_cast<int32_t>(power) + 127) << 23U;
  // A mask in place of a second comparison: compilers make one branch of the two and stop vectorising.
  const uint32_t kept = 0U - static_cast<uint32_t>(x >= -87.3F);
  return y * std::bit_cast<float>(scale & kept);
}

constexpr int64_t kLanes = 16;

// Adds the lanes pairwise, into the first.
[[gnu::always_inline]] inline float total_of(float (&lanes)[kLanes]) {
  for (int64_t width = kLanes / 2; width > 0; width /= 2)
    for (int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  return lanes[0];
}

// The sum of f(i) for i in [0, n), in kLanes partial sums added pairwise at the end.
template <typename F>
inline float sum_of(int64_t n, F&& f) {
  float lanes[kLanes] = {};
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += f(i + lane);
  for (int64_t lane = 0; lane < n - whole; ++lane) lanes[lane] += f(whole + lane);
  return total_of(lanes);
}

template <typename F>
inline float max_of(int64_t n, F&& f) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = -__builtin_inff();
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const float value = f(i + lane);
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
    }
  float most = lanes[0];
  for (const float lane : lanes) most = lane > most ? lane : most;
  for (int64_t i = whole; i < n; ++i) most = f(i) > most ? f(i) : most;
  return most;
}

}  // namespace kedge::cpu
