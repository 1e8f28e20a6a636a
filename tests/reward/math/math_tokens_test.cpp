#include "kedge/reward/math/math_tokens.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

// Tokens apart by |, each with a letter for its kind.
std::string tokens_of(std::string_view text) {
  const auto tokens = math_tokens(text);
  if (!tokens) return "none";
  std::string all;
  for (const MathToken& token : *tokens) {
    all += all.empty() ? "" : "|";
    all += "nwcts"[static_cast<size_t>(token.kind)];
    all += ":" + token.text;
  }
  return all;
}

TEST(MathTokens, ReadNumbersAsPeopleWriteThem) {
  EXPECT_EQ(tokens_of("1,234,567.50"), "n:1234567.50");
  EXPECT_EQ(tokens_of("1{,}234"), "n:1234");
  EXPECT_EQ(tokens_of(R"(1\,234\,567)"), "n:1234567");
  EXPECT_EQ(tokens_of("(1,234)"), "s:(|n:1|s:,|n:234|s:)");  // a list, inside brackets
  EXPECT_EQ(tokens_of("12,34"), "n:12|s:,|n:34");
  EXPECT_EQ(tokens_of("1234,567"), "n:1234|s:,|n:567");
  EXPECT_EQ(tokens_of("5."), "n:5|s:.");
  EXPECT_EQ(tokens_of("1.5e-3"), "n:1.5e-3");
  EXPECT_EQ(tokens_of("2ex"), "n:2|w:ex");
  EXPECT_EQ(math_tokens("1.5e-3")->front().exact, Rational::make(3, 2000));
  EXPECT_EQ(math_tokens(R"(0.1\overline{6})")->front().exact, Rational::make(1, 6));
  EXPECT_EQ(math_tokens("1e99999999999999999999")->front().exact, Rational(1));  // no exponent of that size: 1 and a word
  EXPECT_FALSE(math_tokens("1e999999")->front().exact);
}

TEST(MathTokens, WhatOnlyChangesTheLookIsGone) {
  EXPECT_EQ(tokens_of(R"($\left( \displaystyle x \right)$)"), "s:(|w:x|s:)");
  EXPECT_EQ(tokens_of(R"(\left.x\right|)"), "w:x|s:|");
  EXPECT_EQ(tokens_of(R"(\dfrac{1}{2})"), "c:frac|s:{|n:1|s:}|s:{|n:2|s:}");
  EXPECT_EQ(tokens_of(R"(\$5\%)"), "n:5|s:%");
  EXPECT_EQ(tokens_of(R"(\{1\})"), "s:\\{|n:1|s:\\}");
}

TEST(MathTokens, CharactersAreTheirCommands) {
  EXPECT_EQ(tokens_of("2\u00D7\u03C0"), "n:2|s:*|c:pi");
  EXPECT_EQ(tokens_of("\u221A2"), "c:sqrt|n:2");
  EXPECT_EQ(tokens_of("x\u2264\u2212\u221E"), "w:x|c:le|s:-|c:infty");
  EXPECT_EQ(tokens_of("30\u00B0C"), "n:30|s:^|c:circ|w:C");
  EXPECT_EQ(tokens_of("\u20AC5"), "n:5");
}

TEST(MathTokens, TextsStayWhole) {
  EXPECT_EQ(tokens_of(R"(5\text{ cm}^2)"), "n:5|t: cm|s:^|n:2");
  EXPECT_EQ(tokens_of(R"(\operatorname{sin}x)"), "c:sin|w:x");
  EXPECT_EQ(tokens_of(R"(\mathbb{R})"), "c:mathbb R");
  EXPECT_EQ(tokens_of("sqrt(2)"), "c:sqrt|s:(|n:2|s:)");
}

TEST(MathTokens, GiveUpOnWhatIsNotClosedOrTooLong) {
  EXPECT_EQ(tokens_of(R"(\frac{1)"), "none");
  EXPECT_EQ(tokens_of("1}"), "none");
  EXPECT_EQ(tokens_of(R"(\text{a)"), "none");
  EXPECT_EQ(tokens_of(std::string(kMaxMathBytes + 1, '1')), "none");
  EXPECT_EQ(tokens_of("\\"), "");
  EXPECT_EQ(tokens_of(""), "");
}

}  // namespace
}  // namespace kedge
