#pragma once
// The only source of randomness: Philox4x32-10, a counter-based generator. A draw is a pure function of (seed, stream,
// position), so it does not depend on order, batch, rank or platform: only integer and exactly rounded operations are used.
// Everything here is constexpr, which lets CUDA sources call the same code.
#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace kedge {

using PhiloxBlock = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// One block of the published generator: ten rounds over a 128-bit counter under a 64-bit key.
constexpr PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53U} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32U) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32U) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return counter;
}

namespace random_detail {

constexpr double polynomial(double x, const std::array<double, 8>& coefficients) {  // highest power first
  double sum = 0;
  for (const double coefficient : coefficients) sum = sum * x + coefficient;
  return sum;
}

// Natural logarithm from exactly rounded operations alone, so that its bits are the same everywhere (a libm's are not).
// For positive normal numbers; error below 2e-16 relative where x < 1.
constexpr double log_of(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  int64_t exponent = static_cast<int64_t>(bits >> 52U) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);  // in [1, 2)
  if (mantissa > 1.4142135623730951) mantissa *= 0.5, exponent += 1;
  const double s = (mantissa - 1) / (mantissa + 1);  // log m = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172
  const double s2 = s * s;
  double series = 0;
  for (int odd = 21; odd >= 3; odd -= 2) series = (series + 1.0 / odd) * s2;
  return static_cast<double>(exponent) * 0.6931471805599453 + 2 * (s + s * series);
}

// Newton's iteration from a guess by halving the exponent: constexpr, and correctly rounded operations only.
constexpr double sqrt_of(double x) {
  double root = std::bit_cast<double>((std::bit_cast<uint64_t>(x) >> 1U) + 0x1FF8000000000000ULL);
  for (int i = 0; i < 6; ++i) root = 0.5 * (root + x / root);
  return root;
}

// Quantile of the standard normal distribution for 0 < p < 1 (Wichura 1988, algorithm AS 241, about 1e-16 relative).
constexpr double normal_quantile(double p) {
  const double q = p - 0.5;
  if (q > -0.425 && q < 0.425) {
    const double r = 0.180625 - q * q;
    return q *
           polynomial(r, {2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
                          1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0}) /
           polynomial(r, {5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
                          5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0});
  }
  double r = sqrt_of(-log_of(q < 0 ? p : 1 - p));
  double x = 0;
  if (r <= 5) {
    r -= 1.6;
    x = polynomial(r, {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
                       3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0}) /
        polynomial(r, {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
                       6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0});
  } else {
    r -= 5;
    x = polynomial(r, {2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
                       2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0}) /
        polynomial(r, {2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
                       1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0});
  }
  return q < 0 ? -x : x;
}

}  // namespace random_detail

// Draws by position. Cheap to copy; has no mutable state.
class Random {
 public:
  constexpr Random(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  // A stream named by several numbers, such as (purpose, round, prompt, sample): each is folded in with its own block.
  static constexpr uint64_t stream_of(std::initializer_list<uint64_t> parts) {
    uint64_t folded = 0;
    for (const uint64_t part : parts) folded = Random(folded, part).bits(parts.size());
    return folded;
  }

  [[nodiscard]] constexpr uint64_t bits(uint64_t position) const {
    const PhiloxBlock block = philox({low(position), high(position), low(stream_), high(stream_)}, {low(seed_), high(seed_)});
    return uint64_t{block[1]} << 32U | block[0];
  }
  // In [0, 1), a multiple of 2^-53.
  [[nodiscard]] constexpr double uniform(uint64_t position) const { return static_cast<double>(bits(position) >> 11U) * 0x1p-53; }
  // In (0, 1): the middle of a cell of width 2^-52, so a logarithm of it is finite.
  [[nodiscard]] constexpr double open_uniform(uint64_t position) const {
    return (static_cast<double>(bits(position) >> 12U) + 0.5) * 0x1p-52;
  }
  // Mean 0, variance 1.
  [[nodiscard]] constexpr double normal(uint64_t position) const { return random_detail::normal_quantile(open_uniform(position)); }
  // In [0, bound), bound > 0. The bias is below bound / 2^64.
  [[nodiscard]] constexpr uint64_t below(uint64_t bound, uint64_t position) const { return high_product(bits(position), bound); }

 private:
  static constexpr uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }
  static constexpr uint32_t high(uint64_t value) { return static_cast<uint32_t>(value >> 32U); }
  // The upper 64 bits of a 128-bit product, by halves (CUDA and ISO C++ have no 128-bit integer).
  static constexpr uint64_t high_product(uint64_t a, uint64_t b) {
    const uint64_t low_low = uint64_t{low(a)} * low(b);
    const uint64_t high_low = uint64_t{high(a)} * low(b) + high(low_low);
    const uint64_t low_high = uint64_t{low(a)} * high(b) + low(high_low);
    return uint64_t{high(a)} * high(b) + high(high_low) + high(low_high);
  }

  uint64_t seed_, stream_;
};

// 0 ... size-1 in random order (Fisher-Yates from the front); the same for the same seed everywhere.
[[nodiscard]] std::vector<int64_t> permutation(int64_t size, uint64_t seed);

}  // namespace kedge
