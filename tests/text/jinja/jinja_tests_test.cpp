#include "kedge/text/jinja/jinja_tests.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge::jinja {
namespace {

using kedge::testing::error_of;

bool is(const Value& value, std::string_view name, Values arguments = {}) { return call_test(name, value, {std::move(arguments), {}}); }

TEST(JinjaTests, KindsAreTold) {
  const Value undefined = Value::undefined("x");
  EXPECT_TRUE(is(1, "defined") && is(undefined, "undefined") && is(Value::None{}, "none"));
  EXPECT_TRUE(is(true, "boolean") && is(true, "true") && is(false, "false") && is(true, "number") && !is(true, "integer"));
  EXPECT_TRUE(is(1, "integer") && is(1.5, "float") && is("x", "string") && !is(1, "true"));
  EXPECT_TRUE(is("x", "sequence") && is(Value::list({}), "sequence") && is(undefined, "sequence") && !is(1, "sequence"));
  EXPECT_TRUE(is(undefined, "iterable") && !is(1, "iterable") && is(undefined, "callable"));
}

TEST(JinjaTests, NumbersAreCompared) {
  EXPECT_TRUE(is(3, "odd") && is(4, "even") && is(9, "divisibleby", {3}) && is(-3, "odd"));
  EXPECT_TRUE(is(1, "eq", {1.0}) && is(1, "ne", {2}) && is(2, "gt", {1}) && is(1, "lessthan", {2}) && is(1, "<=", {1}));
  EXPECT_TRUE(is("a", "in", {"abc"}) && !is(1, "in", {Value::list({2})}));
}

TEST(JinjaTests, SameasIsIdentity) {
  const Value list = Value::list({1});
  EXPECT_TRUE(is(Value::None{}, "sameas", {Value::None{}}) && is(list, "sameas", {list}) && is(false, "sameas", {false}));
  EXPECT_FALSE(is(list, "sameas", {Value::list({1})}) || is(0, "sameas", {false}));
}

TEST(JinjaTests, NamesOfFiltersAndTests) {
  EXPECT_TRUE(is("upper", "filter") && is("odd", "test") && has_test("defined"));
  EXPECT_FALSE(is("nope", "filter") || is("nope", "test") || has_test("nope"));
}

TEST(JinjaTests, AnUnknownTestIsNamed) {
  EXPECT_EQ(error_of<Fault>([] { return is(1, "nope"); }), "No test named 'nope'.");
  EXPECT_EQ(error_of<Fault>([] { return is("x", "odd"); }), "not all arguments converted during string formatting");  // "x" % 2
}

}  // namespace
}  // namespace kedge::jinja
