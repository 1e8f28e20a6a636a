#include "kedge/text/jinja/jinja_access.h"

#include <gtest/gtest.h>

#include "kedge/text/jinja/jinja_print.h"

#include "tests/support/expect_error.h"

namespace kedge::jinja {
namespace {

using kedge::testing::error_of;

Value json(std::string_view text) { return Value::from_json(Json::parse(text)); }

TEST(JinjaAccess, ADotPrefersMethodsAndBracketsPreferItems) {
  const Value dict = json(R"({"items": 1, "x": 2})");
  EXPECT_EQ(get_attribute(dict, "x").integer(), 2);
  EXPECT_EQ(repr(call(get_attribute(dict, "items"), {})), "dict_items([('items', 1), ('x', 2)])");
  EXPECT_EQ(get_item(dict, "items").integer(), 1);
  EXPECT_EQ(repr(call(get_item(dict, "keys"), {})), "dict_keys(['items', 'x'])");  // no such item: the method
}

TEST(JinjaAccess, WhatIsNotThereIsUndefinedAndSaysWhy) {
  EXPECT_EQ(get_attribute(json("{}"), "x").why_undefined(), "'dict object' has no attribute 'x'");
  EXPECT_EQ(get_item(json("[]"), 3).why_undefined(), "list object has no element 3");
  EXPECT_EQ(get_item(json("null"), "x").why_undefined(), "'None' has no attribute 'x'");
  EXPECT_EQ(get_item(json("\"abc\""), 1.5).why_undefined(), "str object has no element 1.5");
  EXPECT_EQ(error_of<Fault>([] { return get_attribute(Value::undefined("'a' is undefined"), "b"); }), "'a' is undefined");
}

TEST(JinjaAccess, WhatWouldChangeAValueIsUnsafe) {
  const Value append = get_attribute(json("[1]"), "append");
  EXPECT_TRUE(append.is_undefined());
  EXPECT_EQ(error_of<Fault>([&] { return call(append, {{2}, {}}); }), "access to attribute 'append' of 'list' object is unsafe.");
  EXPECT_EQ(get_attribute(json("{}"), "update").why_undefined(), "access to attribute 'update' of 'dict' object is unsafe.");
  EXPECT_EQ(get_attribute("x", "__class__").why_undefined(), "access to attribute '__class__' of 'str' object is unsafe.");
  EXPECT_EQ(get_attribute(json(R"({"__x__": 1})"), "__x__").integer(), 1);
}

TEST(JinjaAccess, MethodsOfListsAndDictsRead) {
  EXPECT_EQ(repr(call(get_attribute(json("[3, 1, 3]"), "index"), {{1}, {}})), "1");
  EXPECT_EQ(repr(call(get_attribute(json("[3, 1, 3]"), "count"), {{3}, {}})), "2");
  EXPECT_EQ(repr(call(get_attribute(json(R"({"a": 1})"), "get"), {{"b", 5}, {}})), "5");
  EXPECT_TRUE(call(get_attribute(json("{}"), "get"), {{"b"}, {}}).is_none());
  EXPECT_EQ(error_of<Fault>([] { return call(get_attribute(json("[1]"), "index"), {{9}, {}}); }), "9 is not in list");
}

TEST(JinjaAccess, NumbersAndRangesHaveAFewAttributes) {
  EXPECT_EQ(repr(get_attribute(true, "real")), "1");
  EXPECT_EQ(repr(get_attribute(2.5, "imag")), "0.0");
  EXPECT_EQ(repr(get_attribute(std::make_shared<const Range>(Range{1, 9, 2}), "step")), "2");
  EXPECT_EQ(error_of<Fault>([] { return call(get_attribute(5, "bit_length"), {}); }), "the method int.bit_length is not supported");
}

TEST(JinjaAccess, ANamespaceHasOnlyItsOwnNames) {
  Namespace space;
  space.set("items", 1);
  EXPECT_EQ(get_attribute(&space, "items").integer(), 1);
  EXPECT_EQ(get_item(&space, "items").integer(), 1);
  EXPECT_TRUE(get_attribute(&space, "keys").is_undefined());
}

TEST(JinjaAccess, OnlyFunctionsAreCalled) {
  EXPECT_EQ(error_of<Fault>([] { return call("x", {}); }), "'str' object is not callable");
  EXPECT_TRUE(is_callable(make_function("function", [](const Arguments&) { return Value(1); })));
  EXPECT_FALSE(is_callable(1));
}

TEST(JinjaAccess, TheFilterAttrSeesNoItems) { EXPECT_TRUE(get_only_attribute(json(R"({"x": 1})"), "x").is_undefined()); }

}  // namespace
}  // namespace kedge::jinja
