#include "kedge/text/jinja/jinja_lexer.h"

#include <gtest/gtest.h>

#include "kedge/text/jinja/jinja_print.h"

#include "tests/support/expect_error.h"

namespace kedge::jinja {
namespace {

using kedge::testing::error_of;
using Type = Token::Type;

// The data of a template, a | where a tag stands.
std::string data_of(std::string_view source) {
  std::string out;
  for (const Token& token : tokenize(source, "t")) {
    if (token.type == Type::data) out += token.text;
    if (token.type == Type::block_begin || token.type == Type::variable_begin) out += '|';
  }
  return out;
}

Token first_inside(std::string_view code) { return tokenize(str("{{ ", code, " }}"), "t").at(1); }

TEST(JinjaLexer, ATagOnItsOwnLineLeavesNothing) {
  EXPECT_EQ(data_of("a\n  {% x %}\nb"), "a\n|b");
  EXPECT_EQ(data_of("  {% x %}  {% y %}\n"), "|  |");
  EXPECT_EQ(data_of("a {% x %}\n b"), "a | b");
  EXPECT_EQ(data_of("  {{ x }}\nb"), "  |\nb");  // an expression keeps both
}

TEST(JinjaLexer, SignsControlWhiteSpace) {
  EXPECT_EQ(data_of("a \n {%- x -%} \n b"), "a|b");
  EXPECT_EQ(data_of("a\n  {%+ x +%}\nb"), "a\n  |\nb");
  EXPECT_EQ(data_of("a {{- x -}} b"), "a|b");
  EXPECT_EQ(data_of("a\u3000{%- x -%}\u2028b"), "a|b");
  EXPECT_EQ(data_of("x {#- c -#} y"), "xy");
  EXPECT_EQ(data_of("  {# c #}\n  y"), "  y");
}

TEST(JinjaLexer, LineEndsBecomeOneAndTheLastIsDropped) {
  EXPECT_EQ(data_of("a\r\nb\rc\n"), "a\nb\nc");
  EXPECT_EQ(data_of("a\n\n"), "a\n");
  EXPECT_EQ(data_of("\n"), "");
}

TEST(JinjaLexer, RawTextIsData) {
  EXPECT_EQ(data_of("{% raw %}{{ x }}{% endraw %}y"), "{{ x }}y");
  EXPECT_EQ(data_of("{% raw %}\n a{%- endraw %}\nb"), "\n ab");
  EXPECT_EQ(data_of("a {%- raw -%} b {% endraw %}"), "ab ");
}

TEST(JinjaLexer, NumbersInAllBases) {
  EXPECT_EQ(repr(first_inside("1_000").number), "1000");
  EXPECT_EQ(repr(first_inside("0x1F").number), "31");
  EXPECT_EQ(repr(first_inside("0b101").number), "5");
  EXPECT_EQ(repr(first_inside("1.5e-3").number), "0.0015");
  EXPECT_EQ(repr(first_inside("1e3").number), "1000.0");
  EXPECT_EQ(repr(first_inside("007").number), "0");  // and then 7
  EXPECT_EQ(error_of([] { return first_inside("99999999999999999999"); }), "t:1: an integer beyond 64 bits");
}

TEST(JinjaLexer, TextsHavePythonsEscapes) {
  EXPECT_EQ(first_inside(R"('a\n\t\\\'\x41\u00e9\U0001F600\101')").text, "a\n\t\\'Aé\U0001F600A");
  EXPECT_EQ(first_inside(R"("\q\d")").text, R"(\q\d)");
  EXPECT_EQ(first_inside("'a\\\nb'").text, "ab");
  EXPECT_EQ(first_inside("'\\é'").text, "\\xe9");
  EXPECT_EQ(error_of([] { return first_inside(R"('\x4')"); }), "t:1: a truncated \\x, \\u or \\U escape");
  EXPECT_EQ(error_of([] { return first_inside(R"('\ud800')"); }), "t:1: an escape that names no character");
  EXPECT_EQ(error_of([] { return first_inside(R"('\N{DASH}')"); }), "t:1: the escape \\N{...} is not supported");
}

TEST(JinjaLexer, BracesInsideExpressionsBalance) {
  const auto tokens = tokenize("{{ {'a': {'b': 1}} }}x", "t");
  EXPECT_EQ(tokens.at(tokens.size() - 2).text, "x");
  EXPECT_EQ(error_of([] { return tokenize("{{ (1] }}", "t"); }), "t:1: unexpected ']', expected ')'");
  EXPECT_EQ(error_of([] { return tokenize("{{ 1) }}", "t"); }), "t:1: unexpected ')'");
}

TEST(JinjaLexer, ErrorsNameTheLine) {
  EXPECT_EQ(error_of([] { return tokenize("a\n\n{{ x", "t"); }), "t:3: a tag that does not end: no }}");
  EXPECT_EQ(error_of([] { return tokenize("\n{# x", "t"); }), "t:2: a comment that does not end: no #}");
  EXPECT_EQ(error_of([] { return tokenize("{% raw %}", "t"); }), "t:1: a raw block that does not end: no {% endraw %}");
  EXPECT_EQ(error_of([] { return tokenize("{{ 'x }}", "t"); }), "t:1: a text that does not end: no closing quote");
  EXPECT_EQ(error_of([] { return tokenize("{{ a & b }}", "t"); }), "t:1: unexpected character '&'");
  EXPECT_EQ(error_of([] { return tokenize("a\n\xFF", "t"); }), "t:2: not valid UTF-8");
}

TEST(JinjaLexer, TokensKnowTheirLines) {
  const auto tokens = tokenize("a\n{{ x\n+ y }}\nb", "t");
  EXPECT_EQ(tokens.at(0).line, 1U);
  EXPECT_EQ(tokens.at(2).line, 2U);  // x
  EXPECT_EQ(tokens.at(4).line, 3U);  // y
}

}  // namespace
}  // namespace kedge::jinja
