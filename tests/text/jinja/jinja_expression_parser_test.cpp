#include "kedge/text/jinja/jinja_expression_parser.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/jinja.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::rendered;

std::string value_of(std::string_view code) {
  return rendered(str("{{ ", code, " }}"), R"({"n": 7, "l": [3, 1, 2], "d": {"a": {"b": 1}}, "z": 0})");
}
std::string expression_error(std::string_view code) {
  return error_of([&] { return value_of(code); });
}

TEST(JinjaExpressionParser, OperatorsBindAsInJinja) {
  EXPECT_EQ(value_of("1 + 2 * 3 - 4 // 3"), "6");
  EXPECT_EQ(value_of("2 ** 3 ** 2"), "64");   // from the left, unlike Python
  EXPECT_EQ(value_of("-2 ** 2"), "4");        // the sign first, unlike Python
  EXPECT_EQ(value_of("1 ~ 2 + '3'"), "123");  // ~ before +
}

TEST(JinjaExpressionParser, LogicAndComparisons) {
  EXPECT_EQ(value_of("1 < 2 < 3 and not 3 < 2 < 1"), "True");
  EXPECT_EQ(value_of("not n == 7 or z"), "0");
  EXPECT_EQ(value_of("1 in l and 9 not in l"), "True");
  EXPECT_EQ(value_of("1 if z else 2 if z else 3"), "3");
  EXPECT_EQ(value_of("'x' if z"), "");
}

TEST(JinjaExpressionParser, FiltersBindTighterThanOperators) {
  EXPECT_EQ(value_of("'a' + 'b'|upper"), "aB");
  EXPECT_EQ(value_of("-7|abs"), "7");
  EXPECT_EQ(value_of("l|length + 1"), "4");
  EXPECT_EQ(value_of("l|join(',')|length"), "5");
}

TEST(JinjaExpressionParser, TestsTakeAnArgumentWithoutParentheses) {
  EXPECT_EQ(value_of("n is divisibleby 7 and n is not none"), "True");
  EXPECT_EQ(value_of("n is in [7]"), "True");
  EXPECT_EQ(value_of("n is eq(7)"), "True");
  EXPECT_EQ(expression_error("n is defined is defined"), "t:1: you cannot chain multiple tests with is");
}

TEST(JinjaExpressionParser, SubscriptsAndSlices) {
  EXPECT_EQ(value_of("d.a['b']"), "1");
  EXPECT_EQ(value_of("l.0"), "3");
  EXPECT_EQ(value_of("l[::-1][0:2]"), "[2, 1]");
  EXPECT_EQ(value_of("{(1, 2): 'x'}[1, 2]"), "x");
  EXPECT_EQ(expression_error("l[1:2, 3]"), "t:1: several slices in one [ ] are not supported");
}

TEST(JinjaExpressionParser, LiteralsOfEveryKind) {
  EXPECT_EQ(value_of("[1, 2.5, 'a' 'b', true, None, (), (1,), {}, {'k': [1,],}]"), "[1, 2.5, 'ab', True, None, (), (1,), {}, {'k': [1]}]");
  EXPECT_EQ(value_of("1, 2"), "(1, 2)");
}

TEST(JinjaExpressionParser, WhatIsWrongIsNamed) {
  EXPECT_EQ(expression_error(""), "t:1: expected an expression, found }}");
  EXPECT_EQ(expression_error("1 2"), "t:1: expected }}, found a number");
  EXPECT_EQ(expression_error("1 +"), "t:1: unexpected }}");
  EXPECT_EQ(expression_error("a."), "t:1: expected a name or a number after '.'");
  EXPECT_EQ(expression_error("f(a=1, 2)"), "t:1: invalid syntax for function call expression");
  EXPECT_EQ(expression_error("f(a=1, a=2)"), "t:1: keyword argument repeated: a");
}

TEST(JinjaExpressionParser, DepthIsBounded) {
  EXPECT_EQ(expression_error(std::string(1000, '(') + "1" + std::string(1000, ')')), "t:1: nested too deep");
  std::string sum = "1";
  for (int i = 0; i < 1000; ++i) sum += "+1";
  EXPECT_EQ(expression_error(sum), "t:1: an expression of too many parts");
  EXPECT_EQ(value_of(std::string(50, '(') + "1" + std::string(50, ')')), "1");
}

}  // namespace
}  // namespace kedge
