#pragma once
// Fractions of 128-bit integers. A result that does not fit is absent, so that a caller goes on with an approximation; nothing overflows.
#include <cstdint>
#include <optional>
#include <string_view>

namespace kedge {

class Rational {
 public:
  __extension__ using Integer = __int128;

  constexpr Rational() = default;
  constexpr Rational(int64_t whole) : top_(whole) {}
  // Reduced, with a positive denominator; nothing for a denominator of 0.
  [[nodiscard]] static std::optional<Rational> make(Integer top, Integer bottom);
  // Digits with at most one point: "12", "0.50", ".5". Nothing if they are too many.
  [[nodiscard]] static std::optional<Rational> of_decimal(std::string_view digits);

  [[nodiscard]] Integer top() const { return top_; }
  [[nodiscard]] Integer bottom() const { return bottom_; }
  [[nodiscard]] bool is_integer() const { return bottom_ == 1; }
  [[nodiscard]] bool is_zero() const { return top_ == 0; }
  [[nodiscard]] double approximate() const { return static_cast<double>(top_) / static_cast<double>(bottom_); }
  [[nodiscard]] std::optional<int64_t> as_int64() const;  // if it is an integer of that size

  [[nodiscard]] std::optional<Rational> plus(const Rational& other) const;
  [[nodiscard]] std::optional<Rational> times(const Rational& other) const;
  [[nodiscard]] std::optional<Rational> inverse() const;  // nothing for 0
  [[nodiscard]] std::optional<Rational> negated() const;
  [[nodiscard]] std::optional<Rational> to_power(int64_t exponent) const;
  // The number whose degree-th power this is, if that is a fraction too; of a negative number only for an odd degree.
  [[nodiscard]] std::optional<Rational> root(int64_t degree) const;
  [[nodiscard]] Rational floor() const;

  friend bool operator==(const Rational& a, const Rational& b) { return a.top_ == b.top_ && a.bottom_ == b.bottom_; }

 private:
  Integer top_ = 0, bottom_ = 1;
};

}  // namespace kedge
