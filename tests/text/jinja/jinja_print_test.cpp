#include "kedge/text/jinja/jinja_print.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/expect_error.h"

namespace kedge::jinja {
namespace {

using kedge::testing::error_of;

TEST(JinjaPrint, FloatsReadAsInPython) {
  EXPECT_EQ(repr_real(1.0), "1.0");
  EXPECT_EQ(repr_real(0.1), "0.1");
  EXPECT_EQ(repr_real(-0.0), "-0.0");
  EXPECT_EQ(repr_real(100000.0), "100000.0");
  EXPECT_EQ(repr_real(1e15), "1000000000000000.0");
  EXPECT_EQ(repr_real(1e16), "1e+16");
  EXPECT_EQ(repr_real(0.0001), "0.0001");
  EXPECT_EQ(repr_real(0.00001), "1e-05");
  EXPECT_EQ(repr_real(-1234567.891), "-1234567.891");
  EXPECT_EQ(repr_real(5e-324), "5e-324");
  EXPECT_EQ(repr_real(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(repr_real(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(JinjaPrint, ReprChoosesItsQuotesAndEscapes) {
  EXPECT_EQ(repr_text("plain"), "'plain'");
  EXPECT_EQ(repr_text("it's"), "\"it's\"");
  EXPECT_EQ(repr_text("it's \"x\""), "'it\\'s \"x\"'");
  EXPECT_EQ(repr_text("a\n\t\\\x01\x7F é世"), "'a\\n\\t\\\\\\x01\\x7f é世'");
  EXPECT_EQ(repr_text("\u00A0\u200B\U000E0001"), "'\\xa0\\u200b\\U000e0001'");
}

TEST(JinjaPrint, ContainersPrintTheirItemsByRepr) {
  const Value pairs = std::make_shared<const Dict>(std::vector<std::pair<Value, Value>>{{"k", Value::tuple({1})}, {Value::None{}, true}});
  EXPECT_EQ(to_text(Value::list({1, "a", 2.5, Value::None{}, pairs})), "[1, 'a', 2.5, None, {'k': (1,), None: True}]");
  EXPECT_EQ(to_text(Value::tuple({})), "()");
  EXPECT_EQ(to_text("a"), "a");
  EXPECT_EQ(to_text(Value::undefined("x")), "");
  EXPECT_EQ(to_text(Value::list({Value::undefined("x")})), "[Undefined]");
  EXPECT_EQ(to_text(std::make_shared<const View>(View{View::What::items, pairs.dict()})), "dict_items([('k', (1,)), (None, True)])");
  EXPECT_EQ(to_text(std::make_shared<const Range>(Range{0, 3, 1})), "range(0, 3)");
}

TEST(JinjaPrint, AMemoryAddressIsRefused) {
  const Value generator = Value::iterator("generator", 0, [](Value&) { return false; });
  EXPECT_EQ(error_of<Fault>([&] { return to_text(generator); }), "printing a generator, whose text in Python is a memory address");
}

TEST(JinjaPrint, JsonHasPythonsSeparatorsAndEscapes) {
  const Value value = Value::from_json(Json::parse(R"({"b": [1, 2.0, null], "a": "é<\"\n", "e": [], "o": {}})"));
  EXPECT_EQ(to_json(value, {}), R"({"b": [1, 2.0, null], "a": "é<\"\n", "e": [], "o": {}})");
  JsonStyle style;
  style.sort_keys = style.ensure_ascii = style.indented = true;
  style.indent = "  ";
  style.item_separator = ",";
  EXPECT_EQ(to_json(value, style),
            "{\n  \"a\": \"\\u00e9<\\\"\\n\",\n  \"b\": [\n    1,\n    2.0,\n    null\n  ],\n  \"e\": [],\n  \"o\": {}\n}");
  style = {};
  style.ensure_ascii = true;
  EXPECT_EQ(to_json("\x7F\U0001F600", style), "\"\\u007f\\ud83d\\ude00\"");
  EXPECT_EQ(to_json("\x7F\x1F\b", {}), "\"\x7F\\u001f\\b\"");
}

TEST(JinjaPrint, JsonRefusesWhatPythonRefuses) {
  EXPECT_EQ(error_of<Fault>([] { return to_json(Value::undefined("x"), {}); }), "Object of type Undefined is not JSON serializable");
  const Value odd = std::make_shared<const Dict>(std::vector<std::pair<Value, Value>>{{Value::tuple({1}), 1}});
  EXPECT_EQ(error_of<Fault>([&] { return to_json(odd, {}); }), "keys must be str, int, float, bool or None, not tuple");
}

TEST(JinjaPrint, HtmlIsEscaped) { EXPECT_EQ(escape_html("<a b='c'>\"&"), "&lt;a b=&#39;c&#39;&gt;&#34;&amp;"); }

}  // namespace
}  // namespace kedge::jinja
