#include "kedge/reward/math/rational.h"

#include <cmath>
#include <limits>

namespace kedge {
namespace {

using RationalInteger = Rational::Integer;

RationalInteger greatest_divisor(RationalInteger a, RationalInteger b) {
  while (b != 0) {
    const RationalInteger rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

constexpr RationalInteger kLowestInteger = RationalInteger{1} << 127U;  // has no negative, so it is never a result
constexpr RationalInteger kHighestInteger = -(kLowestInteger + 1);

// Checked by division, and multiplied without a sign: what a compiler does for checked signed products of 128 bits is in a library that
// clang does not always link.
std::optional<RationalInteger> integer_product(RationalInteger a, RationalInteger b) {
  if (a == 0 || b == 0) return 0;
  if (a == kLowestInteger || b == kLowestInteger) return std::nullopt;
  if ((a < 0 ? -a : a) > kHighestInteger / (b < 0 ? -b : b)) return std::nullopt;
  __extension__ using Unsigned = unsigned __int128;
  return static_cast<RationalInteger>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
}

std::optional<RationalInteger> integer_power(RationalInteger base, int64_t exponent) {
  RationalInteger result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) {
      const auto next = integer_product(result, base);
      if (!next) return std::nullopt;
      result = *next;
    }
    if (exponent == 1) break;
    const auto square = integer_product(base, base);
    if (!square) return std::nullopt;
    base = *square;
  }
  return result;
}

// Of a number that is not negative. The approximation may be off by one or more for large numbers, so its neighbours are tried.
std::optional<RationalInteger> integer_root(RationalInteger of, int64_t degree) {
  if (of < 2) return of;
  const double near = std::round(std::pow(static_cast<double>(of), 1.0 / static_cast<double>(degree)));
  if (!(near < 9e18)) return std::nullopt;
  const auto middle = static_cast<RationalInteger>(near);
  for (RationalInteger candidate = middle - 2; candidate <= middle + 2; ++candidate)
    if (candidate > 0 && integer_power(candidate, degree) == std::optional(of)) return candidate;
  return std::nullopt;
}

}  // namespace

std::optional<Rational> Rational::make(Integer top, Integer bottom) {
  if (bottom == 0 || top == kLowestInteger || bottom == kLowestInteger) return std::nullopt;
  const Integer divisor = greatest_divisor(top, bottom);
  Rational result;
  result.top_ = (bottom < 0 ? -top : top) / divisor;
  result.bottom_ = (bottom < 0 ? -bottom : bottom) / divisor;
  return result;
}

std::optional<Rational> Rational::of_decimal(std::string_view digits) {
  Integer top = 0, bottom = 1;
  bool behind_point = false;
  for (const char c : digits) {
    if (c == '.') {
      behind_point = true;
      continue;
    }
    const auto shifted = integer_product(top, 10);
    const auto wider = behind_point ? integer_product(bottom, 10) : bottom;
    if (!shifted || !wider || __builtin_add_overflow(*shifted, Integer{c - '0'}, &top)) return std::nullopt;
    bottom = *wider;
  }
  return make(top, bottom);
}

std::optional<int64_t> Rational::as_int64() const {
  if (!is_integer() || top_ > std::numeric_limits<int64_t>::max() || top_ < std::numeric_limits<int64_t>::min()) return std::nullopt;
  return static_cast<int64_t>(top_);
}

std::optional<Rational> Rational::plus(const Rational& other) const {
  const auto left = integer_product(top_, other.bottom_), right = integer_product(other.top_, bottom_),
             bottom = integer_product(bottom_, other.bottom_);
  Integer top = 0;
  if (!left || !right || !bottom || __builtin_add_overflow(*left, *right, &top)) return std::nullopt;
  return make(top, *bottom);
}

std::optional<Rational> Rational::times(const Rational& other) const {
  const auto top = integer_product(top_, other.top_), bottom = integer_product(bottom_, other.bottom_);
  if (!top || !bottom) return std::nullopt;
  return make(*top, *bottom);
}

std::optional<Rational> Rational::inverse() const { return make(bottom_, top_); }

std::optional<Rational> Rational::negated() const { return make(-top_, bottom_); }

std::optional<Rational> Rational::to_power(int64_t exponent) const {
  if (exponent < 0) {
    const auto turned = exponent == std::numeric_limits<int64_t>::min() ? std::nullopt : inverse();
    return turned ? turned->to_power(-exponent) : std::nullopt;
  }
  const auto top = integer_power(top_, exponent), bottom = integer_power(bottom_, exponent);
  if (!top || !bottom) return std::nullopt;
  return make(*top, *bottom);
}

std::optional<Rational> Rational::root(int64_t degree) const {
  if (degree < 1 || (top_ < 0 && degree % 2 == 0)) return std::nullopt;
  const auto top = integer_root(top_ < 0 ? -top_ : top_, degree), bottom = integer_root(bottom_, degree);
  if (!top || !bottom) return std::nullopt;
  return make(top_ < 0 ? -*top : *top, *bottom);
}

Rational Rational::floor() const {
  Rational result;
  result.top_ = top_ / bottom_ - (top_ % bottom_ < 0 ? 1 : 0);
  return result;
}

}  // namespace kedge
