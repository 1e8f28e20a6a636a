#include "kedge/text/jinja/jinja_expression_parser.h"

#include <algorithm>
#include <array>

#include "kedge/core/error.h"

namespace kedge::jinja {
namespace {

using Type = Token::Type;

template <typename... Children>
std::vector<ExprPtr> children_of(Children... children) {
  std::vector<ExprPtr> all;
  (all.push_back(std::move(children)), ...);
  return all;
}

}  // namespace

std::string ExpressionParser::described(const Token& token) {
  static constexpr std::array<std::string_view, 6> kNames = {"text", "{%", "%}", "{{", "}}", ""};
  switch (token.type) {
    case Type::name:
    case Type::op:
      return str("'", token.text, "'");
    case Type::text:
      return "a string";
    case Type::number:
      return "a number";
    case Type::end:
      return "the end of the template";
    default:
      return std::string(kNames.at(static_cast<size_t>(token.type)));
  }
}

void ExpressionParser::fail_at(size_t line, std::string_view message) const { throw UsageError(str(name_, ":", line, ": ", message)); }

const Token& ExpressionParser::take() {
  const Token& token = tokens_[at_];
  if (token.type != Type::end) ++at_;
  return token;
}

bool ExpressionParser::skip_op(std::string_view op) {
  if (!current().is_op(op)) return false;
  take();
  return true;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  take();
  return true;
}

const Token& ExpressionParser::expect(Token::Type type) {
  if (current().type != type) fail_here(str("expected ", described({type, 0, "name", {}}), ", found ", described(current())));
  return take();
}

void ExpressionParser::expect_op(std::string_view op) {
  if (!skip_op(op)) fail_here(str("expected '", op, "', found ", described(current())));
}

void ExpressionParser::measure(Expr& expr) const {
  const auto include = [&](const ExprPtr& child) {
    if (child) expr.depth = std::max(expr.depth, child->depth + 1);
  };
  for (const ExprPtr& child : expr.children) include(child);
  for (const auto& [name, child] : expr.named) include(child);
  include(expr.more), include(expr.more_named);
  if (expr.depth > kMaxDepth) fail_at(expr.line, "an expression of too many parts");
}

ExprPtr ExpressionParser::make(Expr::Type type, size_t line, std::vector<ExprPtr> children) const {
  auto expr = std::make_unique<Expr>(Expr{type, line});
  expr->children = std::move(children);
  measure(*expr);
  return expr;
}

ExprPtr ExpressionParser::parse_expression(bool with_condition) {
  const Nesting nesting(*this);
  if (!with_condition) return parse_or();
  const size_t line = current().line;
  ExprPtr value = parse_or();
  while (skip_name("if")) {
    ExprPtr test = parse_or();
    ExprPtr otherwise = skip_name("else") ? parse_expression() : nullptr;
    value = make(Expr::Type::conditional, line, children_of(std::move(test), std::move(value), std::move(otherwise)));
  }
  return value;
}

ExprPtr ExpressionParser::parse_or() {
  const size_t line = current().line;
  ExprPtr left = parse_and();
  while (skip_name("or")) left = make(Expr::Type::logical_or, line, children_of(std::move(left), parse_and()));
  return left;
}

ExprPtr ExpressionParser::parse_and() {
  const size_t line = current().line;
  ExprPtr left = parse_not();
  while (skip_name("and")) left = make(Expr::Type::logical_and, line, children_of(std::move(left), parse_not()));
  return left;
}

ExprPtr ExpressionParser::parse_not() {
  if (!current().is_name("not")) return parse_compare();
  const Nesting nesting(*this);
  const size_t line = take().line;
  return make(Expr::Type::logical_not, line, children_of(parse_not()));
}

ExprPtr ExpressionParser::parse_compare() {
  static constexpr std::array<std::pair<std::string_view, Comparison>, 6> kOperators = {{{"==", Comparison::equal},
                                                                                         {"!=", Comparison::not_equal},
                                                                                         {"<", Comparison::less},
                                                                                         {"<=", Comparison::less_equal},
                                                                                         {">", Comparison::greater},
                                                                                         {">=", Comparison::greater_equal}}};
  const size_t line = current().line;
  std::vector<ExprPtr> operands = children_of(parse_sum());
  std::vector<Comparison> comparisons;
  while (true) {
    const auto* op = std::find_if(kOperators.begin(), kOperators.end(), [&](const auto& pair) { return current().is_op(pair.first); });
    if (op != kOperators.end()) {
      take();
      comparisons.push_back(op->second);
    } else if (skip_name("in")) {
      comparisons.push_back(Comparison::in);
    } else if (current().is_name("not") && ahead().is_name("in")) {
      take(), take();
      comparisons.push_back(Comparison::not_in);
    } else {
      break;
    }
    operands.push_back(parse_sum());
  }
  if (comparisons.empty()) return std::move(operands[0]);
  ExprPtr compare = make(Expr::Type::compare, line, std::move(operands));
  compare->comparisons = std::move(comparisons);
  return compare;
}

ExprPtr ExpressionParser::parse_sum() {
  const size_t line = current().line;
  ExprPtr left = parse_concat();
  while (current().is_op("+") || current().is_op("-")) {
    const Operator op = take().text == "+" ? Operator::add : Operator::subtract;
    left = make(Expr::Type::calculate, line, children_of(std::move(left), parse_concat()));
    left->op = op;
  }
  return left;
}

ExprPtr ExpressionParser::parse_concat() {
  const size_t line = current().line;
  std::vector<ExprPtr> parts = children_of(parse_product());
  while (skip_op("~")) parts.push_back(parse_product());
  return parts.size() == 1 ? std::move(parts[0]) : make(Expr::Type::concat, line, std::move(parts));
}

ExprPtr ExpressionParser::parse_product() {
  static constexpr std::array<std::pair<std::string_view, Operator>, 4> kOperators = {
      {{"*", Operator::multiply}, {"/", Operator::divide}, {"//", Operator::floor_divide}, {"%", Operator::modulo}}};
  const size_t line = current().line;
  ExprPtr left = parse_power();
  while (true) {
    const auto* op = std::find_if(kOperators.begin(), kOperators.end(), [&](const auto& pair) { return current().is_op(pair.first); });
    if (op == kOperators.end()) return left;
    take();
    left = make(Expr::Type::calculate, line, children_of(std::move(left), parse_power()));
    left->op = op->second;
  }
}

ExprPtr ExpressionParser::parse_power() {
  const size_t line = current().line;
  ExprPtr left = parse_unary(true);
  while (skip_op("**")) {
    left = make(Expr::Type::calculate, line, children_of(std::move(left), parse_unary(true)));
    left->op = Operator::power;
  }
  return left;
}

ExprPtr ExpressionParser::parse_unary(bool with_filters) {
  const Nesting nesting(*this);
  const size_t line = current().line;
  ExprPtr value;
  if (skip_op("-")) {
    value = make(Expr::Type::negate, line, children_of(parse_unary(false)));
  } else if (skip_op("+")) {
    value = make(Expr::Type::plus, line, children_of(parse_unary(false)));
  } else {
    value = parse_primary(false);
  }
  value = parse_postfix(std::move(value));
  while (with_filters) {
    if (current().is_op("|")) {
      value = parse_filters(std::move(value), false);
    } else if (current().is_name("is")) {
      value = parse_test(std::move(value));
    } else if (current().is_op("(")) {
      value = parse_postfix(std::move(value));
    } else {
      break;
    }
  }
  return value;
}

ExprPtr ExpressionParser::parse_primary(bool with_spaces) {
  const Token& token = current();
  if (token.type == Type::name) return parse_name(with_spaces);
  if (token.type == Type::text) {
    ExprPtr text = make(Expr::Type::constant, token.line, {});
    std::string joined;
    while (current().type == Type::text) joined += take().text;
    text->constant = Value(std::move(joined));
    return text;
  }
  if (token.type == Type::number) {
    ExprPtr number = make(Expr::Type::constant, token.line, {});
    number->constant = take().number;
    return number;
  }
  if (skip_op("(")) {
    ExprPtr inner = parse_tuple({.in_parentheses = true});
    expect_op(")");
    return inner;
  }
  if (token.is_op("[")) return parse_list();
  if (token.is_op("{")) return parse_dict();
  fail_here(str("unexpected ", described(token)));
}

ExprPtr ExpressionParser::parse_name(bool with_spaces) {
  const Token& token = take();
  ExprPtr expr = make(Expr::Type::constant, token.line, {});
  if (token.text == "true" || token.text == "True") {
    expr->constant = Value(true);
  } else if (token.text == "false" || token.text == "False") {
    expr->constant = Value(false);
  } else if (token.text == "none" || token.text == "None") {
    expr->constant = Value(Value::None{});
  } else {
    expr->type = Expr::Type::name;
    expr->name = token.text;
    if (with_spaces && skip_op(".")) {
      expr->type = Expr::Type::space_attribute;
      expr->attribute = expect(Type::name).text;
    }
  }
  return expr;
}

bool ExpressionParser::at_tuple_end(std::string_view end_name) const {
  return current().type == Type::variable_end || current().type == Type::block_end || current().is_op(")") ||
         (!end_name.empty() && current().is_name(end_name));
}

ExprPtr ExpressionParser::parse_tuple(const TupleRules& rules) {
  const Nesting nesting(*this);
  const size_t line = current().line;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) expect_op(",");
    if (at_tuple_end(rules.end_name)) break;
    items.push_back(rules.simple ? parse_primary(rules.with_spaces) : parse_expression(rules.with_condition));
    if (!current().is_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items[0]);
  if (!is_tuple && !rules.in_parentheses) fail_here(str("expected an expression, found ", described(current())));
  return make(Expr::Type::tuple, line, std::move(items));
}

ExprPtr ExpressionParser::parse_target(bool with_spaces, std::string_view end_name) {
  ExprPtr target = parse_tuple({.simple = true, .with_spaces = with_spaces, .end_name = end_name});
  check_target(*target);
  return target;
}

void ExpressionParser::check_target(const Expr& target) const {
  const bool good = target.type == Expr::Type::name || target.type == Expr::Type::space_attribute || target.type == Expr::Type::tuple;
  if (!good) fail_at(target.line, "can't assign to this expression");
  for (const ExprPtr& item : target.children) check_target(*item);
}

ExprPtr ExpressionParser::parse_list() {
  const size_t line = take().line;
  std::vector<ExprPtr> items;
  while (!current().is_op("]")) {
    if (!items.empty()) expect_op(",");
    if (current().is_op("]")) break;
    items.push_back(parse_expression());
  }
  expect_op("]");
  return make(Expr::Type::list, line, std::move(items));
}

ExprPtr ExpressionParser::parse_dict() {
  const size_t line = take().line;
  std::vector<ExprPtr> items;
  while (!current().is_op("}")) {
    if (!items.empty()) expect_op(",");
    if (current().is_op("}")) break;
    items.push_back(parse_expression());
    expect_op(":");
    items.push_back(parse_expression());
  }
  expect_op("}");
  return make(Expr::Type::dict, line, std::move(items));
}

ExprPtr ExpressionParser::parse_postfix(ExprPtr subject) {
  while (true) {
    if (current().is_op(".") || current().is_op("[")) {
      subject = parse_subscript(std::move(subject));
    } else if (current().is_op("(")) {
      ExprPtr call = make(Expr::Type::call, current().line, children_of(std::move(subject)));
      parse_arguments(*call);
      subject = std::move(call);
    } else {
      return subject;
    }
  }
}

ExprPtr ExpressionParser::parse_subscript(ExprPtr subject) {
  const Token& token = take();
  if (token.is_op("[")) {
    ExprPtr item = parse_index(std::move(subject));
    expect_op("]");
    return item;
  }
  const Token& after = take();
  if (after.type == Type::name) {
    ExprPtr attribute = make(Expr::Type::attribute, token.line, children_of(std::move(subject)));
    attribute->name = after.text;
    return attribute;
  }
  if (after.type != Type::number || !after.number.is(Kind::integer)) fail_at(after.line, "expected a name or a number after '.'");
  ExprPtr index = make(Expr::Type::constant, after.line, {});
  index->constant = after.number;
  return make(Expr::Type::item, token.line, children_of(std::move(subject), std::move(index)));
}

// The content of [ ]: one index or slice.
ExprPtr ExpressionParser::parse_index(ExprPtr subject) {
  const size_t line = current().line;
  if (current().is_op("]")) return make(Expr::Type::item, line, children_of(std::move(subject), make(Expr::Type::tuple, line, {})));
  ExprPtr start = current().is_op(":") ? nullptr : parse_expression();
  if (current().is_op(",")) {
    std::vector<ExprPtr> keys = children_of(std::move(start));
    while (skip_op(",")) {
      if (current().is_op(":")) fail_here("several slices in one [ ] are not supported");
      keys.push_back(parse_expression());
    }
    return make(Expr::Type::item, line, children_of(std::move(subject), make(Expr::Type::tuple, line, std::move(keys))));
  }
  if (!skip_op(":")) return make(Expr::Type::item, line, children_of(std::move(subject), std::move(start)));
  const auto bound = [&]() -> ExprPtr { return current().is_op(":") || current().is_op("]") ? nullptr : parse_expression(); };
  ExprPtr stop = bound();
  ExprPtr step = skip_op(":") ? bound() : nullptr;
  if (current().is_op(",")) fail_here("several slices in one [ ] are not supported");
  return make(Expr::Type::slice, line, children_of(std::move(subject), std::move(start), std::move(stop), std::move(step)));
}

void ExpressionParser::parse_arguments(Expr& call) {
  const Nesting nesting(*this);
  const size_t line = current().line;
  const auto ensure = [&](bool good) {
    if (!good) fail_at(line, "invalid syntax for function call expression");
  };
  expect_op("(");
  for (bool first = true; !current().is_op(")"); first = false) {
    if (!first) {
      expect_op(",");
      if (current().is_op(")")) break;
    }
    if (skip_op("*")) {
      ensure(!call.more && !call.more_named);
      call.more = parse_expression();
    } else if (skip_op("**")) {
      ensure(!call.more_named);
      call.more_named = parse_expression();
    } else if (current().type == Type::name && ahead().is_op("=")) {
      ensure(!call.more_named);
      const std::string name = take().text;
      take();
      for (const auto& [other, value] : call.named)
        if (other == name) fail_here(str("keyword argument repeated: ", name));
      call.named.emplace_back(name, parse_expression());
    } else {
      ensure(!call.more && !call.more_named && call.named.empty());
      call.children.push_back(parse_expression());
    }
  }
  expect_op(")");
  measure(call);
}

ExprPtr ExpressionParser::parse_filters(ExprPtr subject, bool starts_with_name) {
  while (starts_with_name || current().is_op("|")) {
    if (!starts_with_name) take();
    starts_with_name = false;
    const Token& token = expect(Type::name);
    ExprPtr filter = make(Expr::Type::filter, token.line, children_of(std::move(subject)));
    filter->name = token.text;
    while (skip_op(".")) filter->name += "." + expect(Type::name).text;
    if (current().is_op("(")) parse_arguments(*filter);
    subject = std::move(filter);
  }
  return subject;
}

ExprPtr ExpressionParser::parse_test(ExprPtr subject) {
  const size_t line = take().line;
  const bool negated = skip_name("not");
  ExprPtr test = make(Expr::Type::test, line, children_of(std::move(subject)));
  test->name = expect(Type::name).text;
  while (skip_op(".")) test->name += "." + expect(Type::name).text;
  const Token& token = current();
  const bool starts_operand =
      token.type == Type::name || token.type == Type::text || token.type == Type::number || token.is_op("[") || token.is_op("{");
  if (token.is_op("(")) {
    parse_arguments(*test);
  } else if (starts_operand && !token.is_name("else") && !token.is_name("or") && !token.is_name("and")) {
    if (token.is_name("is")) fail_here("you cannot chain multiple tests with is");
    test->children.push_back(parse_postfix(parse_primary(false)));
    measure(*test);
  }
  return negated ? make(Expr::Type::logical_not, line, children_of(std::move(test))) : std::move(test);
}

}  // namespace kedge::jinja
