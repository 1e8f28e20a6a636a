#pragma once
// Values of expressions: exact fractions as long as they are fractions, complex doubles otherwise. Symbols get fixed fractions, so that
// expressions in them can be compared by value at several points. Knows no lists, sets and relations: they have no value.
#include <complex>
#include <optional>

#include "kedge/reward/math/math_expression.h"

namespace kedge {

struct MathValue {
  std::complex<double> approximate = 0;
  std::optional<Rational> exact = {};
  bool has_point = false;  // a decimal fraction is in it, so it may be rounded
};

// Where an expression is evaluated.
struct MathPoint {
  int index = 0;       // decides the values of symbols
  int plus_minus = 1;  // 1 or -1: what \pm stands for
};

inline constexpr int kNumMathPoints = 6;

// Counts down with every node that is evaluated, so that no answer takes long. At 0 everything is without a value.
struct MathBudget {
  int64_t num_nodes = 200'000;
};

// Nothing if the expression has no value: it is no expression, it divides by 0, it is too large, or the budget is spent.
[[nodiscard]] std::optional<MathValue> evaluate(const MathNode& node, const MathPoint& point, MathBudget& budget);

// Does the node contain a symbol whose value depends on the point, or a text?
[[nodiscard]] bool has_free_symbol(const MathNode& node);
// ... a \pm?
[[nodiscard]] bool has_plus_minus(const MathNode& node);

// Equal, exactly if both are exact. Where one of them has a decimal point they may differ by `tolerance`, times their size if that is
// below 1. Otherwise two approximations may differ by what rounding in doubles makes. The same whichever comes first.
[[nodiscard]] bool same_value(const MathValue& a, const MathValue& b, double tolerance);

}  // namespace kedge
