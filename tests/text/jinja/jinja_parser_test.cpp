#include "kedge/text/jinja/jinja_parser.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge::jinja {
namespace {

using kedge::testing::error_of;

std::string error_in(std::string_view source) {
  return error_of([&] { return parse(source, "t").body.size(); });
}

TEST(JinjaParser, StatementsBecomeATree) {
  const Template parsed =
      parse("a{{ b }}{% if c %}d{% elif e %}{% else %}f{% endif %}{% for x, y in z if x %}{% else %}g{% endfor %}", "t");
  ASSERT_EQ(parsed.body.size(), 4U);
  EXPECT_EQ(parsed.body[0]->text, "a");
  EXPECT_EQ(parsed.body[1]->values.size(), 1U);
  EXPECT_EQ(parsed.body[2]->elifs.size(), 1U);
  EXPECT_EQ(parsed.body[2]->otherwise.size(), 1U);
  EXPECT_EQ(parsed.body[3]->target->children.size(), 2U);
  EXPECT_NE(parsed.body[3]->test, nullptr);
  EXPECT_FALSE(parsed.has_generation);
  EXPECT_TRUE(parse("{% generation %}{% endgeneration %}", "t").has_generation);
}

TEST(JinjaParser, WhatIsLeftOutIsNamedWithItsLine) {
  EXPECT_EQ(error_in("\n{% block x %}{% endblock %}"), "t:2: the tag {% block %} is not supported");
  EXPECT_EQ(error_in("{% include 'x' %}"), "t:1: the tag {% include %} is not supported");
  EXPECT_EQ(error_in("{% do x %}"), "t:1: unknown tag {% do %}");
  EXPECT_EQ(error_in("{% endfor %}"), "t:1: unknown tag {% endfor %}");
}

TEST(JinjaParser, WhatDoesNotEndIsNamed) {
  EXPECT_EQ(error_in("{% if x %}\n"), "t:1: the template ends where {% endif %} is missing");
  EXPECT_EQ(error_in("{% for x in y %}{% if z %}{% endfor %}"), "t:1: unknown tag {% endfor %}");
  EXPECT_EQ(error_in("{% set x %}a"), "t:1: the template ends where {% endset %} is missing");
}

TEST(JinjaParser, TargetsAreNames) {
  EXPECT_EQ(error_in("{% set 1 = 2 %}"), "t:1: can't assign to this expression");
  EXPECT_EQ(error_in("{% set true = 2 %}"), "t:1: can't assign to this expression");
  EXPECT_EQ(error_in("{% for a.b in c %}{% endfor %}"), "t:1: expected 'in', found '.'");
  EXPECT_EQ(error_in("{% for loop in c %}{% endfor %}"), "t:1: can't assign to the special variable loop inside a for");
  EXPECT_EQ(error_in("{% for a in c %}{% set loop = 1 %}{% endfor %}"), "t:1: can't assign to the special variable loop inside a for");
  EXPECT_NO_THROW(static_cast<void>(parse("{% set loop = 1 %}{% set a, ns.b = c %}", "t")));
}

TEST(JinjaParser, BreakStandsInsideALoopOfTheSameFunction) {
  const std::string wanted = "t:1: break and continue are only allowed inside a for";
  EXPECT_EQ(error_in("{% break %}"), wanted);
  EXPECT_EQ(error_in("{% for a in b %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}"), wanted);
  EXPECT_EQ(error_in("{% for a in b %}{% generation %}{% break %}{% endgeneration %}{% endfor %}"), wanted);
  EXPECT_EQ(error_in("{% for a in b %}{% else %}{% break %}{% endfor %}"), wanted);
  EXPECT_NO_THROW(static_cast<void>(parse("{% for a in b %}{% set x %}{% break %}{% endset %}{% endfor %}", "t")));
}

TEST(JinjaParser, MacrosHaveDistinctParametersWithDefaultsLast) {
  EXPECT_EQ(error_in("{% macro m(a, a) %}{% endmacro %}"), "t:1: two parameters are named a");
  EXPECT_EQ(error_in("{% macro m(a=1, b) %}{% endmacro %}"), "t:1: a parameter without a default follows one with a default");
  EXPECT_EQ(error_in("{% call 1 %}{% endcall %}"), "t:1: expected a call after {% call %}");
}

TEST(JinjaParser, NestingIsBounded) {
  std::string source;
  for (int i = 0; i < 1000; ++i) source += "{% if a %}";
  EXPECT_EQ(error_in(source), "t:1: nested too deep");
}

}  // namespace
}  // namespace kedge::jinja
