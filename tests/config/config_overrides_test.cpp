#include "kedge/config/config_overrides.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;

std::string value_of(const std::string& text) { return to_json(parse_override("k=" + text).value).dump(); }

TEST(ConfigOverrides, ThePrefixSaysWhatIsMeant) {
  EXPECT_EQ(parse_override("a.b=1").kind, OverrideKind::change);
  EXPECT_EQ(parse_override("+a.b=1").kind, OverrideKind::add);
  EXPECT_EQ(parse_override("++a.b=1").kind, OverrideKind::set_or_add);
  EXPECT_EQ(parse_override("~a.b").kind, OverrideKind::remove);
  EXPECT_EQ(parse_override("++a.b=1").key, "a.b");
}

TEST(ConfigOverrides, ValuesAreReadAsTheReferenceWritesThem) {
  EXPECT_EQ(value_of("1e-6"), "1e-06");
  EXPECT_EQ(value_of("null"), "null");
  EXPECT_EQ(value_of(""), "null");
  EXPECT_EQ(value_of("False"), "false");
  EXPECT_EQ(value_of("'12'"), "\"12\"");
  EXPECT_EQ(value_of("\"a \\\" b\""), "\"a \\\" b\"");
  EXPECT_EQ(value_of("/a/b c=d.jsonl"), "\"/a/b c=d.jsonl\"");
  EXPECT_EQ(value_of("[a, 'b, c', 3,]"), R"(["a", "b, c", 3])");
  EXPECT_EQ(value_of("{train: [f.jsonl],validation:[g], x:{}}"), R"({"train": ["f.jsonl"], "validation": ["g"], "x": {}})");
  EXPECT_EQ(value_of("{name:sgd}"), R"({"name": "sgd"})");
  EXPECT_EQ(value_of("{\"a\": [0.3, http://x/y]}"), R"({"a": [0.3, "http://x/y"]})");
  EXPECT_EQ(value_of("[${a.b},${sum:1,2}]"), R"(["${a.b}", "${sum:1,2}"])");
  EXPECT_EQ(value_of("'it' is"), "\"'it' is\"");
}

TEST(ConfigOverrides, EscapesInPlainTextAreThoseOfTheReference) {
  EXPECT_EQ(parse_override(R"(k=runs/x-step\=10)").value.text, "runs/x-step=10");
  EXPECT_EQ(parse_override(R"(k=\{a\}\(b\)\: \[c\]\,\\)").value.text, R"({a}(b): [c],\)");
  EXPECT_EQ(parse_override(R"(k= \ a\ )").value.text, " a ");
  EXPECT_EQ(value_of(R"([a\,b, c\]])"), R"(["a,b", "c]"])");
  EXPECT_EQ(value_of(R"({a\:b: c\}, d: \\})"), R"({"a:b": "c}", "d": "\\"})");
  EXPECT_EQ(parse_override(R"(k=Q: {input}\nA: {output})").value.text, R"(Q: {input}\nA: {output})");
  EXPECT_EQ(parse_override(R"(k=\d\${a}\)").value.text, R"(\d\${a}\)");
  EXPECT_EQ(parse_override(R"(k='\(a\)')").value.text, R"(\(a\))");
}

TEST(ConfigOverrides, BrokenOnesAreNamed) {
  const auto error = [](const char* text) { return error_of([&] { return parse_override(text); }); };
  EXPECT_EQ(error("abc"), "command line: \"abc\" is not an override; expected key=value, +key=value, ++key=value or ~key");
  EXPECT_EQ(error("~a=1"), "command line: \"~a=1\" is not an override; expected key=value, +key=value, ++key=value or ~key");
  EXPECT_EQ(error("a..b=1"), "command line: \"a..b=1\" is not an override; expected key=value, +key=value, ++key=value or ~key");
  EXPECT_EQ(error("=1"), "command line: \"=1\" is not an override; expected key=value, +key=value, ++key=value or ~key");
  EXPECT_EQ(error("a=[1, 2"), "command line: a=[1, 2: expected a comma or ]");
  EXPECT_EQ(
      error("a.b={b} {c}"),
      "command line: a.b={b} {c}: expected a colon after key \"b\"; { opens a map, so a text that starts with it needs quotes inside the "
      "shell's: 'a.b=\"{b} {c}\"'");
  EXPECT_EQ(error("a=[{b}]"), "command line: a=[{b}]: expected a colon after key \"b\"");
  EXPECT_EQ(error("a={b:1,b:2}"), "command line: a={b:1,b:2}: key \"b\" occurs twice");
  EXPECT_EQ(error("a=[1]x"), "command line: a=[1]x: unexpected \"x\" after the value");
  EXPECT_EQ(error("a='x"), "command line: a='x: no closing '");
  EXPECT_EQ(error(("a=" + std::string(100, '[')).c_str()).find("nested deeper than 64 levels") == std::string::npos, false);
  EXPECT_EQ(error("a=\xFF"), "command line: an override is not UTF-8: a=\xEF\xBF\xBD");
}

TEST(ConfigOverrides, AFileNameIsNoOverride) {
  EXPECT_TRUE(is_override("a.b=1"));
  EXPECT_TRUE(is_override("++a=1"));
  EXPECT_TRUE(is_override("~a"));
  EXPECT_FALSE(is_override("configs/ppo.yaml"));
  EXPECT_FALSE(is_override("runs/x=1/ppo.yaml"));
}

}  // namespace
}  // namespace kedge
