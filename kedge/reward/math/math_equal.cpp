#include "kedge/reward/math/math_equal.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kedge/reward/math/math_value.h"

namespace kedge {
namespace {

using NodeKind = MathNode::Kind;

bool is_unordered(const MathNode& node) { return node.kind == NodeKind::list || node.kind == NodeKind::set; }

bool is_name(const MathNode& node) {
  if (node.kind == NodeKind::symbol || node.kind == NodeKind::text) return true;
  return node.kind == NodeKind::multiply && node.parts[0].kind == NodeKind::symbol && node.parts.size() == 2;  // f(x), and xy
}

// Is the node an equation that says what a name, or a worked-out number, is? Then what it is.
const MathNode* assigned(const MathNode& node) {
  if (node.kind != NodeKind::relation) return nullptr;
  const bool is_member = node.name == "e";
  if (!is_member && node.name.find_first_not_of('=') != std::string::npos) return nullptr;
  if (is_name(node.parts[0]) || !has_free_symbol(node.parts[0])) return &node.parts.back();
  return !is_member && is_name(node.parts.back()) && node.parts.size() == 2 ? &node.parts[0] : nullptr;
}

MathNode bound_of(bool negative) {
  MathNode infinity{.kind = NodeKind::symbol, .name = "infty"};
  return negative ? MathNode{.kind = NodeKind::negate, .parts = {infinity}} : infinity;
}

// An inequality between one symbol and numbers, as the interval of the symbol's values.
std::optional<MathNode> interval_of(const MathNode& node) {
  if (node.kind != NodeKind::relation || node.name.find_first_not_of("<>lg") != std::string::npos) return std::nullopt;
  std::vector<MathNode> parts = node.parts;
  std::string names = node.name;
  if (names[0] == '>' || names[0] == 'g') {  // smallest first
    std::reverse(parts.begin(), parts.end());
    std::reverse(names.begin(), names.end());
    for (char& name : names) name = name == '>' ? '<' : (name == 'g' ? 'l' : '!');
  }
  if (names.find_first_not_of("<l") != std::string::npos) return std::nullopt;
  const auto bracket = [&](size_t at, char closed, char open) { return names[at] == 'l' ? closed : open; };
  MathNode interval{.kind = NodeKind::sequence};
  const auto is_bound = [](const MathNode& part) { return !has_free_symbol(part); };
  if (parts.size() == 3 && is_bound(parts[0]) && is_name(parts[1]) && is_bound(parts[2])) {
    interval.name = {bracket(0, '[', '('), bracket(1, ']', ')')};
    interval.parts = {parts[0], parts[2]};
  } else if (parts.size() == 2 && is_name(parts[0]) && is_bound(parts[1])) {
    interval.name = {'(', bracket(0, ']', ')')};
    interval.parts = {bound_of(true), parts[1]};
  } else if (parts.size() == 2 && is_bound(parts[0]) && is_name(parts[1])) {
    interval.name = {bracket(0, '[', '('), ')'};
    interval.parts = {parts[0], bound_of(false)};
  } else {
    return std::nullopt;
  }
  return interval;
}

MathNode difference(const MathNode& relation) {
  return {.kind = NodeKind::add, .parts = {relation.parts[0], {.kind = NodeKind::negate, .parts = {relation.parts[1]}}}};
}

class Comparison {
 public:
  explicit Comparison(double tolerance) : tolerance_(tolerance) {}

  bool same(const MathNode& a, const MathNode& b) {
    if (budget_.num_nodes <= 0) return false;
    --budget_.num_nodes;
    if (a.kind == NodeKind::relation || b.kind == NodeKind::relation) return same_with_relation(a, b);
    if (has_plus_minus(a) || has_plus_minus(b)) return same_with_plus_minus(a, b);
    if (is_unordered(a) || is_unordered(b)) return same_with_unordered(a, b);
    if (a.kind == NodeKind::matrix || b.kind == NodeKind::matrix) return same_matrices(a, b);
    if (a.kind == NodeKind::sequence || b.kind == NodeKind::sequence)
      return a.kind == b.kind && a.name == b.name && same_in_order(a.parts, b.parts);
    if (a.kind == NodeKind::join || b.kind == NodeKind::join) return same_joins(a, b);
    if (a.kind == NodeKind::text || b.kind == NodeKind::text) return a.kind == b.kind && a.name == b.name;
    if (a.kind == NodeKind::percent || b.kind == NodeKind::percent) return same_percent(a, b);
    return same_by_value(a, b);
  }

 private:
  bool same_in_order(const std::vector<MathNode>& a, const std::vector<MathNode>& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [&](const MathNode& x, const MathNode& y) { return same(x, y); });
  }

  // Each part of one has its own equal part of the other.
  bool same_in_any_order(const std::vector<MathNode>& a, const std::vector<MathNode>& b) {
    if (a.size() != b.size()) return false;
    std::vector<bool> is_used(b.size(), false);
    return std::all_of(a.begin(), a.end(), [&](const MathNode& part) {
      for (size_t i = 0; i < b.size(); ++i)
        if (!is_used[i] && same(part, b[i])) return static_cast<bool>(is_used[i] = true);
      return false;
    });
  }

  bool same_with_relation(const MathNode& a, const MathNode& b) {
    if (a.kind == b.kind && same_relations(a, b)) return true;
    const MathNode *of_a = assigned(a), *of_b = assigned(b);
    if (of_a != nullptr && of_b != nullptr)  // two equations: x = 5 is not y = 5
      return is_name(a.parts[0]) && is_name(b.parts[0]) && same_by_value(a.parts[0], b.parts[0]) && same(*of_a, *of_b);
    const auto reduced = [](const MathNode& node, const MathNode* value) -> std::optional<MathNode> {
      if (value != nullptr) return *value;
      return node.kind == NodeKind::relation ? interval_of(node) : node;
    };
    const auto left = reduced(a, of_a), right = reduced(b, of_b);
    return left && right && same(*left, *right);
  }

  // Do both say that the same expression, up to a factor, is 0, or below 0?
  bool same_relations(const MathNode& a, const MathNode& b) {
    if (a.parts.size() != 2 || b.parts.size() != 2) return false;
    const auto turned = [](char name) {
      return name == '<' ? '>' : (name == '>' ? '<' : (name == 'l' ? 'g' : (name == 'g' ? 'l' : name)));
    };
    const char name = a.name[0];
    if (name == 'e' || (b.name[0] != name && b.name[0] != turned(name))) return false;
    const MathNode left = difference(a), right = difference(b);
    std::optional<std::complex<double>> factor;
    int num_points = 0;
    for (int index = 0; index < kNumMathPoints; ++index) {
      const auto x = evaluate(left, {.index = index}, budget_), y = evaluate(right, {.index = index}, budget_);
      if (x.has_value() != y.has_value()) return false;
      if (!x) continue;
      if ((x->approximate == 0.0) != (y->approximate == 0.0)) return false;
      if (x->approximate == 0.0) continue;
      const std::complex<double> here = x->approximate / y->approximate;
      if (factor && std::abs(*factor - here) > 1e-9 * std::abs(here)) return false;
      factor = here;
      ++num_points;
    }
    if (num_points < 2) return false;
    if (name == '=' || name == '!') return true;
    return factor->imag() == 0 && (factor->real() > 0) == (b.name[0] == name);
  }

  // 3 \pm 2 is 5 and 1.
  bool same_with_plus_minus(const MathNode& a, const MathNode& b) {
    const auto both = [&](const MathNode& node) -> std::optional<std::vector<MathValue>> {
      const auto first = evaluate(node, {.plus_minus = 1}, budget_), second = evaluate(node, {.plus_minus = -1}, budget_);
      if (first && second) return std::vector<MathValue>{*first, *second};
      if (!is_unordered(node) || node.parts.size() != 2) return std::nullopt;
      std::vector<MathValue> values;
      for (const MathNode& part : node.parts) {
        const MathNode* value = assigned(part);
        const auto its = evaluate(value == nullptr ? part : *value, {}, budget_);
        if (!its) return std::nullopt;
        values.push_back(*its);
      }
      return values;
    };
    const auto x = both(a), y = both(b);
    if (!x || !y) return false;
    const auto same_pair = [&](size_t first, size_t second) {
      return same_value((*x)[0], (*y)[first], tolerance_) && same_value((*x)[1], (*y)[second], tolerance_);
    };
    return same_pair(0, 1) || same_pair(1, 0);
  }

  bool same_with_unordered(const MathNode& a, const MathNode& b) {
    if (is_unordered(a) && is_unordered(b)) return same_in_any_order(a.parts, b.parts);
    const MathNode &unordered = is_unordered(a) ? a : b, &other = is_unordered(a) ? b : a;
    if (unordered.kind == NodeKind::list && other.kind == NodeKind::sequence && other.name == "()")
      return same_in_order(unordered.parts, other.parts);
    return unordered.parts.size() == 1 && same(unordered.parts[0], other);  // {5} is 5
  }

  // A matrix of one row or column is the tuple of its parts.
  bool same_matrices(const MathNode& a, const MathNode& b) {
    if (a.kind == b.kind) return same_in_order(a.parts, b.parts);
    const MathNode &matrix = a.kind == NodeKind::matrix ? a : b, &other = a.kind == NodeKind::matrix ? b : a;
    if (other.kind != NodeKind::sequence || other.name != "()") return false;
    if (matrix.parts.size() == 1) return same_in_order(matrix.parts[0].parts, other.parts);
    std::vector<MathNode> column;
    for (const MathNode& row : matrix.parts) {
      if (row.parts.size() != 1) return false;
      column.push_back(row.parts[0]);
    }
    return same_in_order(column, other.parts);
  }

  bool same_joins(const MathNode& a, const MathNode& b) {
    if (a.kind != b.kind || a.name != b.name) return false;
    return a.name == "setminus" ? same_in_order(a.parts, b.parts) : same_in_any_order(a.parts, b.parts);
  }

  // 50% is 0.5, and where only one of the two has the sign, 50 too.
  bool same_percent(const MathNode& a, const MathNode& b) {
    if (same_by_value(a, b)) return true;
    if (a.kind == b.kind) return false;
    return same_by_value(a.kind == NodeKind::percent ? a.parts[0] : a, b.kind == NodeKind::percent ? b.parts[0] : b);
  }

  bool same_by_value(const MathNode& a, const MathNode& b) {
    const bool is_free = has_free_symbol(a) || has_free_symbol(b);
    int num_points = 0;
    for (int index = 0; index < (is_free ? kNumMathPoints : 1); ++index) {
      const auto x = evaluate(a, {.index = index}, budget_), y = evaluate(b, {.index = index}, budget_);
      if (x.has_value() != y.has_value()) return false;
      if (!x) continue;
      if (!same_value(*x, *y, tolerance_)) return false;
      ++num_points;
    }
    return num_points >= (is_free ? 2 : 1);
  }

  double tolerance_;
  MathBudget budget_;
};

}  // namespace

bool same_answer(const MathNode& a, const MathNode& b, double tolerance) { return Comparison(tolerance).same(a, b); }

}  // namespace kedge
