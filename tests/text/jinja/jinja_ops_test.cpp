#include "kedge/text/jinja/jinja_ops.h"

#include <gtest/gtest.h>

#include <limits>

#include "kedge/text/jinja/jinja_print.h"

#include "tests/support/expect_error.h"

namespace kedge::jinja {
namespace {

using kedge::testing::error_of;

std::string calculated(Operator op, const Value& left, const Value& right) { return repr(calculate(op, left, right)); }

TEST(JinjaOps, DivisionRoundsDownAndModuloFollowsTheDivisor) {
  EXPECT_EQ(calculated(Operator::floor_divide, -7, 2), "-4");
  EXPECT_EQ(calculated(Operator::modulo, -7, 3), "2");
  EXPECT_EQ(calculated(Operator::modulo, 7, -3), "-2");
  EXPECT_EQ(calculated(Operator::floor_divide, 7.5, 2), "3.0");
  EXPECT_EQ(calculated(Operator::modulo, -7.5, 2), "0.5");
  EXPECT_EQ(calculated(Operator::divide, 10, 2), "5.0");
}

TEST(JinjaOps, PowersOfIntegersStayIntegers) {
  EXPECT_EQ(calculated(Operator::power, 2, 10), "1024");
  EXPECT_EQ(calculated(Operator::power, 2, -1), "0.5");
  EXPECT_EQ(calculated(Operator::power, 2.0, 3), "8.0");
}

TEST(JinjaOps, TextsAndListsAddAndRepeat) {
  EXPECT_EQ(calculated(Operator::add, "a", "b"), "'ab'");
  EXPECT_EQ(calculated(Operator::multiply, 3, "ab"), "'ababab'");
  EXPECT_EQ(calculated(Operator::multiply, "ab", -1), "''");
  EXPECT_EQ(calculated(Operator::add, Value::list({1}), Value::list({2})), "[1, 2]");
  EXPECT_EQ(calculated(Operator::multiply, Value::tuple({1}), 2), "(1, 1)");
  EXPECT_EQ(calculated(Operator::add, Value("<a>", true), "<b>"), "Markup('<a>&lt;b&gt;')");
}

TEST(JinjaOps, WhatPythonRefusesIsRefusedInItsWords) {
  EXPECT_EQ(error_of<Fault>([] { return calculate(Operator::add, "a", 1); }), "can only concatenate str (not \"int\") to str");
  EXPECT_EQ(error_of<Fault>([] { return calculate(Operator::subtract, "a", "b"); }), "unsupported operand type(s) for -: 'str' and 'str'");
  EXPECT_EQ(error_of<Fault>([] { return calculate(Operator::divide, 1, 0); }), "division by zero");
  EXPECT_EQ(error_of<Fault>([] { return calculate(Operator::add, Value::undefined("'x' is undefined"), 1); }), "'x' is undefined");
  EXPECT_EQ(error_of<Fault>([] { return compare(Comparison::less, "a", 1); }), "'<' not supported between instances of 'str' and 'int'");
  EXPECT_EQ(error_of<Fault>([] { return contains("abc", 1); }), "'in <string>' requires string as left operand, not int");
  EXPECT_EQ(error_of<Fault>([] { return length(5); }), "object of type 'int' has no len()");
}

TEST(JinjaOps, IntegersBeyond64BitsAreRefused) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  const std::string wanted = "an integer beyond 64 bits";
  EXPECT_EQ(error_of<Fault>([] { return calculate(Operator::add, kMost, 1); }), wanted);
  EXPECT_EQ(error_of<Fault>([] { return calculate(Operator::multiply, kMost, 2); }), wanted);
  EXPECT_EQ(error_of<Fault>([] { return calculate(Operator::power, 10, 19); }), wanted);
  EXPECT_EQ(error_of<Fault>([] { return calculate(Operator::floor_divide, kLeast, -1); }), wanted);
  EXPECT_EQ(error_of<Fault>([] { return negate(kLeast); }), wanted);
  EXPECT_EQ(calculated(Operator::modulo, kLeast, -1), "0");
}

TEST(JinjaOps, SequencesCompareItemByItem) {
  EXPECT_TRUE(less(Value::list({1, 2}), Value::list({1, 3})));
  EXPECT_TRUE(less(Value::tuple({1}), Value::tuple({1, 0})));
  EXPECT_TRUE(compare(Comparison::greater_equal, "b", "a"));
  EXPECT_TRUE(less("z", "é"));
}

TEST(JinjaOps, SlicesFollowPython) {
  const Value text("héllo"), none = Value::None{};
  EXPECT_EQ(to_text(slice(text, 1, 3, none)), "él");
  EXPECT_EQ(to_text(slice(text, none, none, -1)), "olléh");
  EXPECT_EQ(to_text(slice(text, -2, none, none)), "lo");
  EXPECT_EQ(to_text(slice(text, 3, 0, -1)), "llé");
  EXPECT_EQ(to_text(slice(text, 9, 2, none)), "");
  EXPECT_EQ(to_text(slice(Value::list({1, 2, 3, 4}), none, none, 2)), "[1, 3]");
  EXPECT_EQ(to_text(slice(std::make_shared<const Range>(Range{0, 10, 2}), 1, 3, none)), "range(2, 6, 2)");
  EXPECT_EQ(error_of<Fault>([&] { return slice(text, none, none, 0); }), "slice step cannot be zero");
}

TEST(JinjaOps, ItemsCountFromBothEnds) {
  EXPECT_EQ(to_text(*item_at("aé世", 1)), "é");
  EXPECT_EQ(to_text(*item_at("aé世", -1)), "世");
  EXPECT_FALSE(item_at("aé世", 3).has_value());
  EXPECT_FALSE(item_at(Value::list({}), -1).has_value());
}

TEST(JinjaOps, IterationGoesOverCharactersKeysAndNumbers) {
  EXPECT_EQ(repr(Value::list(list_of("aé"))), "['a', 'é']");
  EXPECT_EQ(repr(Value::list(list_of(Value::from_json(Json::parse(R"({"x": 1, "y": 2})"))))), "['x', 'y']");
  EXPECT_EQ(repr(Value::list(list_of(std::make_shared<const Range>(Range{3, 0, -2})))), "[3, 1]");
  EXPECT_TRUE(list_of(Value::undefined("x")).empty());
  EXPECT_EQ(error_of<Fault>([] { return list_of(1); }), "'int' object is not iterable");
}

TEST(JinjaOps, MembershipLooksAtKeysItemsAndParts) {
  EXPECT_TRUE(contains("abc", "bc") && contains("abc", "") && contains(Value::list({1, 2}), 2.0));
  EXPECT_TRUE(contains(Value::from_json(Json::parse(R"({"x": 1})")), "x"));
  EXPECT_FALSE(contains(Value::list({"a"}), "b"));
}

TEST(JinjaOps, FindingIsLinear) {
  const std::string text(1 << 20, 'a');
  EXPECT_EQ(find_bytes(text, std::string(1 << 19, 'a') + "b"), std::string_view::npos);
  EXPECT_EQ(find_bytes("abcabc", "bc", 2), 4U);
  EXPECT_EQ(find_bytes("abc", "", 3), 3U);
}

}  // namespace
}  // namespace kedge::jinja
