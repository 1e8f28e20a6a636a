#include "kedge/text/jinja/jinja_text_methods.h"

#include <gtest/gtest.h>

#include "kedge/text/jinja/jinja_print.h"

#include "tests/support/expect_error.h"

namespace kedge::jinja {
namespace {

using kedge::testing::error_of;

std::string called(const Value& self, std::string_view name, Arguments arguments = {}) {
  return repr(*call_text_method(self, name, arguments));
}

TEST(JinjaTextMethods, StripTakesASetOfCharacters) {
  EXPECT_EQ(called("  a\u3000", "strip"), "'a'");
  EXPECT_EQ(called("xyaéyx", "strip", {{"yxé"}, {}}), "'a'");
  EXPECT_EQ(called("xax", "lstrip", {{"x"}, {}}), "'ax'");
  EXPECT_EQ(called("xax", "rstrip", {{"x"}, {}}), "'xa'");
  EXPECT_EQ(called("xax", "strip", {{Value::None{}}, {}}), "'xax'");
}

TEST(JinjaTextMethods, SplitAtWhiteSpaceDropsEmptyParts) {
  EXPECT_EQ(called("  a  b c ", "split"), "['a', 'b', 'c']");
  EXPECT_EQ(called("  a  b c ", "split", {{Value::None{}, 1}, {}}), "['a', 'b c ']");
  EXPECT_EQ(called("  a  b c ", "rsplit", {{Value::None{}, 1}, {}}), "['  a  b', 'c']");
  EXPECT_EQ(called("", "split"), "[]");
}

TEST(JinjaTextMethods, SplitAtATextKeepsThem) {
  EXPECT_EQ(called("a,,b", "split", {{","}, {}}), "['a', '', 'b']");
  EXPECT_EQ(called("a,b,c", "split", {{","}, {{"maxsplit", 1}}}), "['a', 'b,c']");
  EXPECT_EQ(called("a,b,c", "rsplit", {{",", 1}, {}}), "['a,b', 'c']");
  EXPECT_EQ(called("aéébéé", "rsplit", {{"éé"}, {}}), "['a', 'b', '']");
  EXPECT_EQ(called("", "split", {{","}, {}}), "['']");
  EXPECT_EQ(error_of<Fault>([] { return called("a", "split", {{""}, {}}); }), "empty separator");
}

TEST(JinjaTextMethods, SplitlinesKnowsEveryLineEnd) {
  EXPECT_EQ(called("a\r\nb\rc\x0B\u2028", "splitlines"), "['a', 'b', 'c', '']");
  EXPECT_EQ(called("a\n\nb\n", "splitlines", {{true}, {}}), "['a\\n', '\\n', 'b\\n']");
}

TEST(JinjaTextMethods, PlacesAreCountedInCharacters) {
  EXPECT_EQ(called("世界世", "find", {{"界"}, {}}), "1");
  EXPECT_EQ(called("世界世", "rfind", {{"世"}, {}}), "2");
  EXPECT_EQ(called("世界世", "find", {{"世", 1}, {}}), "2");
  EXPECT_EQ(called("世界世", "find", {{"x"}, {}}), "-1");
  EXPECT_EQ(called("世界世", "count", {{"世"}, {}}), "2");
  EXPECT_EQ(called("世界世", "count", {{""}, {}}), "4");
  EXPECT_EQ(called("abc", "find", {{"", 4}, {}}), "-1");
  EXPECT_EQ(error_of<Fault>([] { return called("a", "index", {{"b"}, {}}); }), "substring not found");
}

TEST(JinjaTextMethods, StartsAndEndsTakeATupleAndAWindow) {
  EXPECT_EQ(called("hello", "startswith", {{Value::tuple({"x", "he"})}, {}}), "True");
  EXPECT_EQ(called("hello", "endswith", {{"ll", 0, 4}, {}}), "True");
  EXPECT_EQ(called("hello", "startswith", {{"", 9}, {}}), "False");
  EXPECT_EQ(error_of<Fault>([] {
              return called("a", "startswith", {{1}, {}});
            }),
            "startswith first arg must be str or a tuple of str, not int");
}

TEST(JinjaTextMethods, ReplaceJoinAndTheRest) {
  EXPECT_EQ(called("aaa", "replace", {{"a", "b", 2}, {}}), "'bba'");
  EXPECT_EQ(called("éa", "replace", {{"", "-"}, {}}), "'-é-a-'");
  EXPECT_EQ(called(", ", "join", {{Value::list({"a", "b"})}, {}}), "'a, b'");
  EXPECT_EQ(called("-", "join", {{"abc"}, {}}), "'a-b-c'");
  EXPECT_EQ(called("a.b.c", "partition", {{"."}, {}}), "('a', '.', 'b.c')");
  EXPECT_EQ(called("a.b.c", "rpartition", {{"."}, {}}), "('a.b', '.', 'c')");
  EXPECT_EQ(called("prefix-x", "removeprefix", {{"prefix-"}, {}}), "'x'");
  EXPECT_EQ(called("x.txt", "removesuffix", {{".txt"}, {}}), "'x'");
  EXPECT_EQ(called("-5", "zfill", {{4}, {}}), "'-005'");
  EXPECT_EQ(called("ab", "center", {{5, "*"}, {}}), "'**ab*'");
  EXPECT_EQ(called("abc", "center", {{6}, {}}), "' abc  '");
  EXPECT_EQ(called("a\tb", "expandtabs", {{4}, {}}), "'a   b'");
  EXPECT_EQ(error_of<Fault>([] {
              return called("-", "join", {{Value::list({1})}, {}});
            }),
            "sequence item 0: expected str instance, int found");
}

TEST(JinjaTextMethods, QuestionsAboutAllCharacters) {
  EXPECT_EQ(called("", "isdigit"), "False");
  EXPECT_EQ(called("12²", "isdigit"), "True");
  EXPECT_EQ(called("12²", "isdecimal"), "False");
  EXPECT_EQ(called("", "isprintable"), "True");
  EXPECT_EQ(called("Hello World", "istitle"), "True");
  EXPECT_EQ(called("Hello world", "istitle"), "False");
  EXPECT_TRUE(is_lower_text("a1") && is_upper_text("A-B"));
  EXPECT_FALSE(is_lower_text("1") || is_lower_text("aB"));
}

TEST(JinjaTextMethods, SafeTextStaysSafe) {
  EXPECT_EQ(called(Value("<a>", true), "upper"), "Markup('<A>')");
  EXPECT_EQ(called(Value("<a>", true), "replace", {{"a", "<"}, {}}), "Markup('<&lt;>')");
}

TEST(JinjaTextMethods, AMethodLeftOutIsNamedWhenCalled) {
  EXPECT_TRUE(has_text_method("encode"));
  EXPECT_FALSE(has_text_method("nope"));
  EXPECT_EQ(error_of<Fault>([] { return called("a", "encode"); }), "the method str.encode is not supported");
}

}  // namespace
}  // namespace kedge::jinja
