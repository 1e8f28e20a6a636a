#include "kedge/reward/math/math_value.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>

namespace kedge {
namespace {

using NodeKind = MathNode::Kind;
using MaybeValue = std::optional<MathValue>;
using ComplexNumber = std::complex<double>;

constexpr double kHuge = std::numeric_limits<double>::infinity();

MaybeValue exact_value(const std::optional<Rational>& exact) {
  if (!exact) return std::nullopt;
  return MathValue{.approximate = exact->approximate(), .exact = exact};
}

MaybeValue inexact_value(ComplexNumber value) {
  if (std::isnan(value.real()) || std::isnan(value.imag())) return std::nullopt;
  return MathValue{.approximate = value};
}

bool is_real(const MathValue& value) { return value.approximate.imag() == 0; }

// The exact result if there is one, otherwise the approximate one.
MaybeValue either(const std::optional<Rational>& exact, ComplexNumber approximate) {
  return exact ? exact_value(exact) : inexact_value(approximate);
}

// Fractions that no identity of an answer happens to fit; half of them negative. Two names that have the same one at a point do not have
// it at the others.
Rational symbol_value(std::string_view name, int point) {
  uint32_t hash = 2166136261U ^ (static_cast<uint32_t>(point) * 0x9E3779B9U);
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  hash = (hash ^ (hash >> 16U)) * 0x85EBCA6BU;
  hash = (hash ^ (hash >> 13U)) * 0xC2B2AE35U;
  hash ^= hash >> 16U;
  const auto top = static_cast<int64_t>(hash % 89U) + 2;
  const auto bottom = static_cast<int64_t>(hash / 89U % 11U) + 3;
  return Rational::make(point % 2 == 0 ? top : -top, bottom).value_or(Rational(2));
}

MaybeValue constant_value(std::string_view name) {
  if (name == "pi") return inexact_value(std::numbers::pi);
  if (name == "e") return inexact_value(std::numbers::e);
  if (name == "i") return inexact_value({0, 1});
  if (name == "infty") return inexact_value(kHuge);
  return std::nullopt;
}

MaybeValue sum_of(const MathValue& a, const MathValue& b) {
  return either(a.exact && b.exact ? a.exact->plus(*b.exact) : std::nullopt, a.approximate + b.approximate);
}

MaybeValue product_of(const MathValue& a, const MathValue& b) {
  const auto exact = a.exact && b.exact ? a.exact->times(*b.exact) : std::nullopt;
  if (is_real(a) && is_real(b)) return either(exact, a.approximate.real() * b.approximate.real());  // infinities stay
  return either(exact, a.approximate * b.approximate);
}

MaybeValue quotient_of(const MathValue& a, const MathValue& b) {
  if (b.approximate == ComplexNumber(0)) return std::nullopt;
  const auto inverse = b.exact ? b.exact->inverse() : std::nullopt;
  return either(a.exact && inverse ? a.exact->times(*inverse) : std::nullopt, a.approximate / b.approximate);
}

MaybeValue negative_of(const MathValue& a) { return either(a.exact ? a.exact->negated() : std::nullopt, -a.approximate); }

MaybeValue root_of(const MathValue& degree, const MathValue& of) {
  const auto whole = degree.exact ? degree.exact->as_int64() : std::nullopt;
  if (!whole || *whole < 1 || *whole > 1000) return std::nullopt;
  if (of.exact)
    if (const auto root = of.exact->root(*whole)) return exact_value(root);
  const auto share = 1.0 / static_cast<double>(*whole);
  if (is_real(of) && of.approximate.real() < 0 && *whole % 2 == 1) return inexact_value(-std::pow(-of.approximate.real(), share));
  if (is_real(of) && of.approximate.real() >= 0) return inexact_value(std::pow(of.approximate.real(), share));
  return inexact_value(std::pow(of.approximate, share));
}

MaybeValue power_of(const MathValue& base, const MathValue& exponent) {
  if (exponent.exact && base.exact) {
    const Rational& power = *exponent.exact;
    if (power.is_zero()) return base.exact->is_zero() ? std::nullopt : exact_value(Rational(1));
    if (const auto whole = power.as_int64())
      if (const auto result = base.exact->to_power(*whole)) return exact_value(result);
    const auto degree = power.is_integer() ? std::nullopt : Rational::make(power.bottom(), 1)->as_int64();
    if (degree && base.exact->top() >= 0)
      if (const auto root = root_of({.exact = Rational(*degree)}, base); root && root->exact)
        return power_of(*root, {.approximate = static_cast<double>(power.top()), .exact = Rational::make(power.top(), 1)});
  }
  if (base.approximate == ComplexNumber(0)) return exponent.approximate.real() > 0 ? exact_value(Rational(0)) : std::nullopt;
  if (is_real(base) && is_real(exponent)) {
    const double result = std::pow(base.approximate.real(), exponent.approximate.real());
    if (!std::isnan(result)) return inexact_value(result);
  }
  return inexact_value(std::pow(base.approximate, exponent.approximate));
}

std::optional<int64_t> small_whole(const MathValue& value, int64_t limit) {
  const auto whole = value.exact ? value.exact->as_int64() : std::nullopt;
  return whole && *whole >= 0 && *whole <= limit ? whole : std::nullopt;
}

MaybeValue factorial_of(const MathValue& value) {
  const auto whole = small_whole(value, 170);
  MaybeValue result = exact_value(Rational(1));
  for (int64_t i = 2; whole && i <= *whole; ++i) result = product_of(*result, *exact_value(Rational(i)));
  return whole ? result : std::nullopt;
}

// n (n - 1) ... (n - k + 1) / k!, whatever n is.
MaybeValue binomial_of(const MathValue& n, const MathValue& k) {
  const auto count = small_whole(k, 1000);
  MaybeValue result = exact_value(Rational(1));
  for (int64_t i = 0; count && i < *count && result; ++i) {
    const auto factor = sum_of(n, *exact_value(Rational(-i)));
    const auto share = factor ? quotient_of(*factor, *exact_value(Rational(i + 1))) : std::nullopt;
    result = share ? product_of(*result, *share) : std::nullopt;
  }
  return count ? result : std::nullopt;
}

MaybeValue rounded_down(const MathValue& value) {
  if (value.exact) return exact_value(value.exact->floor());
  return is_real(value) ? inexact_value(std::floor(value.approximate.real() + 1e-12)) : std::nullopt;
}

MaybeValue greatest_common(const MathValue& a, const MathValue& b) {
  const auto left = small_whole(a, 1LL << 60), right = small_whole(b, 1LL << 60);
  return left && right ? exact_value(Rational(std::gcd(*left, *right))) : std::nullopt;
}

MaybeValue circle_function(std::string_view name, ComplexNumber x) {
  if (name == "sin") return inexact_value(std::sin(x));
  if (name == "cos") return inexact_value(std::cos(x));
  if (name == "tan") return inexact_value(std::tan(x));
  if (name == "cot") return inexact_value(1.0 / std::tan(x));
  if (name == "sec") return inexact_value(1.0 / std::cos(x));
  if (name == "csc") return inexact_value(1.0 / std::sin(x));
  if (name == "arcsin") return inexact_value(std::asin(x));
  if (name == "arccos") return inexact_value(std::acos(x));
  if (name == "arctan") return inexact_value(std::atan(x));
  if (name == "sinh") return inexact_value(std::sinh(x));
  if (name == "cosh") return inexact_value(std::cosh(x));
  return name == "tanh" ? inexact_value(std::tanh(x)) : std::nullopt;
}

MaybeValue function_of_one(std::string_view name, const MathValue& x) {
  if (name == "abs") {
    if (x.exact && x.exact->top() >= 0) return x;
    return either(x.exact ? x.exact->negated() : std::nullopt, std::abs(x.approximate));
  }
  if (name == "floor") return rounded_down(x);
  if (name == "ceil") {
    const auto below = negative_of(x);
    const auto down = below ? rounded_down(*below) : std::nullopt;
    return down ? negative_of(*down) : std::nullopt;
  }
  if (name == "degree") return x;
  if (name == "factorial") return factorial_of(x);
  if (name == "exp") return inexact_value(std::exp(x.approximate));
  if (name == "ln" || name == "log" || name == "lg") {
    if (x.approximate == ComplexNumber(0)) return std::nullopt;
    return inexact_value(std::log(x.approximate) / (name == "lg" ? std::numbers::ln10 : 1.0));
  }
  return circle_function(name, x.approximate);
}

MaybeValue function_of_two(std::string_view name, const MathValue& x, const MathValue& y) {
  if (name == "root") return root_of(x, y);
  if (name == "binom") return binomial_of(x, y);
  if (name == "gcd") return greatest_common(x, y);
  if (name == "lcm") {
    const auto common = greatest_common(x, y);
    const auto product = product_of(x, y);
    return common && product ? quotient_of(*product, *common) : std::nullopt;
  }
  if (name == "min" || name == "max") {
    if (!is_real(x) || !is_real(y)) return std::nullopt;
    return (x.approximate.real() < y.approximate.real()) == (name == "min") ? x : y;
  }
  if (name != "log" || x.approximate == ComplexNumber(0) || y.approximate == ComplexNumber(0) || y.approximate == ComplexNumber(1))
    return std::nullopt;
  return inexact_value(std::log(x.approximate) / std::log(y.approximate));
}

class Evaluator {
 public:
  Evaluator(const MathPoint& point, MathBudget& budget) : point_(point), budget_(budget) {}

  MaybeValue value(const MathNode& node) {
    if (--budget_.num_nodes < 0) return std::nullopt;
    switch (node.kind) {
      case NodeKind::number:
        return number(node);
      case NodeKind::symbol:
        if (const auto constant = constant_value(node.name)) return constant;
        return exact_value(symbol_value(node.name, point_.index));
      case NodeKind::text:
        return exact_value(symbol_value(node.name, point_.index));
      case NodeKind::add:
        return folded(node, sum_of);
      case NodeKind::multiply:
        return folded(node, product_of);
      case NodeKind::divide:
        return folded(node, quotient_of);
      case NodeKind::power:
        return folded(node, power_of);
      case NodeKind::negate: {
        const auto part = value(node.parts[0]);
        return part ? marked(negative_of(*part), *part, *part) : std::nullopt;
      }
      case NodeKind::plus_minus: {
        const auto part = value(node.parts[0]);
        if (!part) return part;
        return (point_.plus_minus > 0) == node.name.empty() ? part : marked(negative_of(*part), *part, *part);
      }
      case NodeKind::percent: {
        const auto part = value(node.parts[0]);
        return part ? marked(quotient_of(*part, {.approximate = 100, .exact = Rational(100)}), *part, *part) : std::nullopt;
      }
      case NodeKind::function:
        return function(node);
      default:
        return std::nullopt;
    }
  }

 private:
  // Of a and b. What is too large for a double has no value, or everything large would be equal.
  static MaybeValue marked(MaybeValue result, const MathValue& a, const MathValue& b) {
    const auto is_finite = [](const MathValue& value) { return std::isfinite(std::abs(value.approximate)); };
    if (result && !is_finite(*result) && is_finite(a) && is_finite(b)) return std::nullopt;
    if (result) result->has_point = a.has_point || b.has_point;
    return result;
  }

  static MaybeValue number(const MathNode& node) {
    if (!std::isfinite(node.approximate)) return std::nullopt;
    return MathValue{.approximate = node.approximate, .exact = node.exact, .has_point = node.has_point};
  }

  MaybeValue folded(const MathNode& node, const std::function<MaybeValue(const MathValue&, const MathValue&)>& combine) {
    MaybeValue result = value(node.parts[0]);
    for (size_t i = 1; i < node.parts.size() && result; ++i) {
      const auto next = value(node.parts[i]);
      result = next ? marked(combine(*result, *next), *result, *next) : std::nullopt;
    }
    return result;
  }

  MaybeValue function(const MathNode& node) {
    if (node.parts.empty() || node.parts.size() > 2) return std::nullopt;
    const MathNode& of = node.parts[0];
    auto first = value(of);
    if (!first) return first;
    if (of.kind == NodeKind::function && of.name == "degree" && node.name != "degree") {
      const auto in_radians = circle_function(node.name, first->approximate * (std::numbers::pi / 180));
      if (in_radians) return marked(in_radians, *first, *first);
    }
    if (node.parts.size() == 1) return marked(function_of_one(node.name, *first), *first, *first);
    const auto second = value(node.parts[1]);
    return second ? marked(function_of_two(node.name, *first, *second), *first, *second) : std::nullopt;
  }

  const MathPoint& point_;
  MathBudget& budget_;
};

bool any_node(const MathNode& node, const std::function<bool(const MathNode&)>& wanted) {
  return wanted(node) || std::any_of(node.parts.begin(), node.parts.end(), [&](const MathNode& part) { return any_node(part, wanted); });
}

}  // namespace

std::optional<MathValue> evaluate(const MathNode& node, const MathPoint& point, MathBudget& budget) {
  return Evaluator(point, budget).value(node);
}

bool has_free_symbol(const MathNode& node) {
  return any_node(node, [](const MathNode& part) {
    return part.kind == NodeKind::text || (part.kind == NodeKind::symbol && !constant_value(part.name));
  });
}

bool has_plus_minus(const MathNode& node) {
  return any_node(node, [](const MathNode& part) { return part.kind == NodeKind::plus_minus; });
}

bool same_value(const MathValue& a, const MathValue& b, double tolerance) {
  const bool are_exact = a.exact && b.exact, may_be_rounded = a.has_point || b.has_point;
  if (are_exact && *a.exact == *b.exact) return true;
  if (are_exact && !may_be_rounded) return false;
  if (a.approximate == b.approximate) return true;  // infinities too
  const double apart = std::abs(a.approximate - b.approximate);
  if (!std::isfinite(apart)) return false;
  const double size = std::max(std::abs(a.approximate), std::abs(b.approximate));
  constexpr double kSlack = 1 + 1e-9;  // 0.333333 is exactly a millionth of 1/3 away from it
  if (may_be_rounded) return apart <= tolerance * std::min(1.0, size) * kSlack;
  return apart <= 1e-10 * size + 1e-13;
}

}  // namespace kedge
