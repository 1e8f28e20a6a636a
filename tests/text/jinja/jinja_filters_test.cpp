#include "kedge/text/jinja/jinja_filters.h"

#include <gtest/gtest.h>

#include "kedge/text/jinja/jinja_print.h"

#include "tests/support/expect_error.h"

namespace kedge::jinja {
namespace {

using kedge::testing::error_of;

std::string filtered(std::string_view name, const Value& value, Arguments arguments = {}) {
  return repr(call_filter(name, value, arguments));
}

TEST(JinjaFilters, TextFiltersTakeAnything) {
  EXPECT_EQ(filtered("upper", 1.5), "'1.5'");
  EXPECT_EQ(filtered("trim", " a "), "'a'");
  EXPECT_EQ(filtered("trim", "xax", {{"x"}, {}}), "'a'");
  EXPECT_EQ(filtered("capitalize", "hELLO"), "'Hello'");
  EXPECT_EQ(filtered("title", "they're o-k (x"), "\"They're O-K (X\"");
  EXPECT_EQ(filtered("replace", 121, {{1, "x"}, {}}), "'x2x'");
  EXPECT_EQ(filtered("string", true), "'True'");
  EXPECT_EQ(filtered("wordcount", "it's a_b é"), "4");
}

TEST(JinjaFilters, DefaultIsForTheUndefined) {
  EXPECT_EQ(filtered("default", Value::undefined("x"), {{1}, {}}), "1");
  EXPECT_EQ(filtered("default", "", {{1}, {}}), "''");
  EXPECT_EQ(filtered("d", "", {{1, true}, {}}), "1");
  EXPECT_EQ(filtered("default", Value::undefined("x")), "''");
}

TEST(JinjaFilters, IndentLeavesTheFirstAndEmptyLines) {
  EXPECT_EQ(filtered("indent", "a\n\nb"), "'a\\n\\n    b'");
  EXPECT_EQ(filtered("indent", "a\nb", {{2, true}, {}}), "'  a\\n  b'");
  EXPECT_EQ(filtered("indent", "a\n\nb", {{">"}, {{"blank", true}}}), "'a\\n>\\n>b'");
}

TEST(JinjaFilters, NumbersAreReadLeniently) {
  EXPECT_EQ(filtered("int", "3.9"), "3");
  EXPECT_EQ(filtered("int", "x", {{-1}, {}}), "-1");
  EXPECT_EQ(filtered("int", "1a", {{0, 16}, {}}), "26");
  EXPECT_EQ(filtered("int", Value::None{}), "0");
  EXPECT_EQ(filtered("float", "1e2"), "100.0");
  EXPECT_EQ(filtered("float", "x"), "0.0");
  EXPECT_EQ(filtered("abs", -3), "3");
  EXPECT_EQ(filtered("round", 42.55, {{1, "floor"}, {}}), "42.5");
  EXPECT_EQ(filtered("round", 42.55, {{1, "ceil"}, {}}), "42.6");
  EXPECT_EQ(filtered("filesizeformat", 1500), "'1.5 kB'");
  EXPECT_EQ(filtered("filesizeformat", 1536, {{true}, {}}), "'1.5 KiB'");
}

TEST(JinjaFilters, TojsonIsTransformers) {
  const Value value = Value::from_json(Json::parse(R"({"b": "<é>", "a": [1]})"));
  EXPECT_EQ(to_text(call_filter("tojson", value, {})), R"({"b": "<é>", "a": [1]})");
  EXPECT_EQ(to_text(call_filter("tojson", value, {{}, {{"indent", 1}, {"sort_keys", true}}})),
            "{\n \"a\": [\n  1\n ],\n \"b\": \"<é>\"\n}");
  EXPECT_EQ(to_text(call_filter("tojson", value, {{}, {{"separators", Value::tuple({",", ":"})}}})), R"({"b":"<é>","a":[1]})");
}

TEST(JinjaFilters, EscapingMarksTextAsSafe) {
  EXPECT_EQ(filtered("e", "<"), "Markup('&lt;')");
  EXPECT_EQ(filtered("e", Value("<", true)), "Markup('<')");
  EXPECT_EQ(filtered("forceescape", Value("<", true)), "Markup('&lt;')");
  EXPECT_EQ(filtered("safe", "<"), "Markup('<')");
}

TEST(JinjaFilters, TruncateCutsAtAWord) {
  EXPECT_EQ(filtered("truncate", "foo bar baz qux", {{9}, {}}), "'foo...'");
  EXPECT_EQ(filtered("truncate", "foo bar baz qux", {{9, true}, {}}), "'foo ba...'");
  EXPECT_EQ(filtered("truncate", "foo bar baz qux", {{11}, {}}), "'foo bar baz qux'");  // within the leeway of five
  EXPECT_EQ(filtered("center", "ab", {{6}, {}}), "'  ab  '");
}

TEST(JinjaFilters, WhatIsUnknownOrLeftOutIsNamed) {
  EXPECT_EQ(error_of<Fault>([] { return filtered("nope", 1); }), "No filter named 'nope'.");
  EXPECT_EQ(error_of<Fault>([] { return filtered("pprint", 1); }), "the filter 'pprint' is not supported");
  EXPECT_TRUE(has_filter("pprint") && has_filter("map") && !has_filter("nope"));
}

}  // namespace
}  // namespace kedge::jinja
