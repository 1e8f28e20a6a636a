#include "kedge/text/jinja/jinja_access.h"
#include "kedge/text/jinja/jinja_eval.h"
#include "kedge/text/jinja/jinja_filters.h"
#include "kedge/text/jinja/jinja_ops.h"
#include "kedge/text/jinja/jinja_print.h"
#include "kedge/text/jinja/jinja_tests.h"

namespace kedge::jinja {

Value Evaluator::eval(const Expr& expr) {
  const Depth depth(*this);
  line_ = expr.line;
  switch (expr.type) {
    case Expr::Type::constant:
      return expr.constant;
    case Expr::Type::name:
    case Expr::Type::space_attribute:
      return eval_name(expr);
    case Expr::Type::list:
      return Value::list(eval_all(expr.children));
    case Expr::Type::tuple:
      return Value::tuple(eval_all(expr.children));
    case Expr::Type::dict:
      return eval_dict(expr);
    case Expr::Type::attribute: {
      const Value object = eval(*expr.children[0]);
      line_ = expr.line;
      return get_attribute(object, expr.name);
    }
    case Expr::Type::item: {
      const Values parts = eval_all(expr.children);
      line_ = expr.line;
      return get_item(parts[0], parts[1]);
    }
    case Expr::Type::slice:
      return eval_slice(expr);
    case Expr::Type::call:
      return eval_call(expr, nullptr);
    case Expr::Type::filter:
      return eval_filter(expr);
    case Expr::Type::test:
      return eval_test(expr);
    case Expr::Type::negate:
      return negate(eval(*expr.children[0]));
    case Expr::Type::plus:
      return plus(eval(*expr.children[0]));
    case Expr::Type::logical_not:
      return !truth(eval(*expr.children[0]));
    case Expr::Type::logical_and: {
      Value left = eval(*expr.children[0]);
      return truth(left) ? eval(*expr.children[1]) : left;
    }
    case Expr::Type::logical_or: {
      Value left = eval(*expr.children[0]);
      return truth(left) ? left : eval(*expr.children[1]);
    }
    case Expr::Type::calculate:
      return eval_calculate(expr);
    case Expr::Type::compare:
      return eval_compare(expr);
    case Expr::Type::conditional:
      return eval_conditional(expr);
    case Expr::Type::concat:
      break;
  }
  return eval_concat(expr);
}

Value Evaluator::eval_name(const Expr& expr) {
  const Value& value = at(expr.slot);
  return value.is_missing() ? Value::undefined(repr_text(expr.name) + " is undefined") : value;
}

Values Evaluator::eval_all(const std::vector<ExprPtr>& exprs) {
  Values values;
  values.reserve(exprs.size());
  for (const ExprPtr& expr : exprs) values.push_back(eval(*expr));
  return values;
}

Value Evaluator::eval_dict(const Expr& expr) {
  std::vector<std::pair<Value, Value>> pairs;
  for (size_t i = 0; i < expr.children.size(); i += 2) {
    Value key = eval(*expr.children[i]);
    pairs.emplace_back(std::move(key), eval(*expr.children[i + 1]));
  }
  return std::make_shared<const Dict>(std::move(pairs));
}

Value Evaluator::eval_slice(const Expr& expr) {
  Values parts;
  for (const ExprPtr& child : expr.children) parts.push_back(child ? eval(*child) : Value());
  line_ = expr.line;
  return slice(parts[0], parts[1], parts[2], parts[3]);
}

Arguments Evaluator::arguments_of(const Expr& expr) {
  Arguments arguments;
  for (size_t i = 1; i < expr.children.size(); ++i) arguments.positional.push_back(eval(*expr.children[i]));
  for (const auto& [name, value] : expr.named) arguments.named.emplace_back(name, eval(*value));
  if (expr.more)
    for (const Value& value : list_of(eval(*expr.more))) arguments.positional.push_back(value);
  if (expr.more_named) {
    const Value more = eval(*expr.more_named);
    if (!more.is(Kind::dict)) fail("argument after ** must be a mapping, not ", type_name(more));
    for (const auto& [key, value] : more.dict()->items) {
      if (!key.is_text()) fail("keywords must be strings");
      for (const auto& [name, other] : arguments.named)
        if (name == key.bytes()) fail("got multiple values for keyword argument ", repr_text(name));
      arguments.named.emplace_back(key.bytes(), value);
      Meter::step(arguments.named.size());
    }
  }
  return arguments;
}

Value Evaluator::eval_call(const Expr& expr, const Value* caller) {
  const Value function = eval(*expr.children[0]);
  Arguments arguments = arguments_of(expr);
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  line_ = expr.line;
  return call(function, arguments);
}

Value Evaluator::eval_filter(const Expr& expr) {
  const Value subject = expr.children[0] ? eval(*expr.children[0]) : *block_text_;
  const Arguments arguments = arguments_of(expr);
  line_ = expr.line;
  return call_filter(expr.name, subject, arguments);
}

Value Evaluator::eval_test(const Expr& expr) {
  const Value subject = eval(*expr.children[0]);
  const Arguments arguments = arguments_of(expr);
  line_ = expr.line;
  return call_test(expr.name, subject, arguments);
}

Value Evaluator::eval_calculate(const Expr& expr) {
  const Value left = eval(*expr.children[0]);
  const Value right = eval(*expr.children[1]);
  line_ = expr.line;
  return calculate(expr.op, left, right);
}

Value Evaluator::eval_compare(const Expr& expr) {
  Value left = eval(*expr.children[0]);
  for (size_t i = 0; i < expr.comparisons.size(); ++i) {
    Value right = eval(*expr.children[i + 1]);
    line_ = expr.line;
    if (!compare(expr.comparisons[i], left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Evaluator::eval_conditional(const Expr& expr) {
  if (truth(eval(*expr.children[0]))) return eval(*expr.children[1]);
  if (expr.children[2]) return eval(*expr.children[2]);
  return Value::undefined(str("the inline if-expression on line ", expr.line, " evaluated to false and no else section was defined."));
}

Value Evaluator::eval_concat(const Expr& expr) {
  std::string out;
  for (const ExprPtr& part : expr.children) append(out, to_text(eval(*part)));
  return Value(std::move(out));
}

}  // namespace kedge::jinja
