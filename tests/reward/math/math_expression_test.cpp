#include "kedge/reward/math/math_expression.h"

#include <gtest/gtest.h>

#include <array>

namespace kedge {
namespace {

using Kind = MathNode::Kind;

// A tree as text: add(1 mul(2 x)).
std::string shown(const MathNode& node) {
  static constexpr std::array<const char*, 17> kNames = {"number",  "symbol", "add",  "mul",      "div", "pow",  "neg",      "pm",    "fn",
                                                         "percent", "text",   "list", "sequence", "set", "join", "relation", "matrix"};
  if (node.kind == Kind::number) return node.exact && node.exact->is_integer() ? std::to_string(*node.exact->as_int64()) : "decimal";
  if (node.kind == Kind::symbol) return node.name;
  std::string text = kNames[static_cast<size_t>(node.kind)];
  if (!node.name.empty()) text += "'" + node.name + "'";
  text += "(";
  for (const MathNode& part : node.parts) text += (&part == node.parts.data() ? "" : " ") + shown(part);
  return text + ")";
}

std::string parsed(std::string_view text) {
  const auto node = parse_math(text);
  return node ? shown(*node) : "none";
}

TEST(MathExpression, FollowsTheUsualPrecedence) {
  EXPECT_EQ(parsed("1+2x"), "add(1 mul(2 x))");
  EXPECT_EQ(parsed("-x^2"), "neg(pow(x 2))");
  EXPECT_EQ(parsed("a/b/c"), "mul(a div(1 b) div(1 c))");
  EXPECT_EQ(parsed("2*-3"), "mul(2 neg(3))");
  EXPECT_EQ(parsed(R"(\frac12x)"), "mul(div(1 2) x)");
  EXPECT_EQ(parsed(R"(\sqrt[3]{2}y)"), "mul(fn'root'(3 2) y)");
  EXPECT_EQ(parsed(R"(\sin^2 2x+1)"), "add(pow(fn'sin'(mul(2 x)) 2) 1)");
  EXPECT_EQ(parsed(R"(\log_2 8)"), "fn'log'(8 2)");
  EXPECT_EQ(parsed("|x-1|y"), "mul(fn'abs'(add(x neg(1))) y)");
  EXPECT_EQ(parsed(R"(3 \pm 2)"), "add(3 pm(2))");
  EXPECT_EQ(parsed("x_1'"), "x_1'");
}

TEST(MathExpression, AFractionBehindAWholeNumberMakesAMixedOne) {
  EXPECT_EQ(parsed(R"(2\frac{1}{3})"), "add(2 div(1 3))");
  EXPECT_EQ(parsed("2 1/3"), "add(2 div(1 3))");
  EXPECT_EQ(parsed(R"(2\frac{x}{3})"), "mul(2 div(x 3))");
  EXPECT_EQ(parsed(R"(2.5\frac{1}{3})"), "mul(decimal div(1 3))");
  EXPECT_EQ(parsed(R"(x\frac{1}{3})"), "mul(x div(1 3))");
}

TEST(MathExpression, BracketsMakeTuplesIntervalsAndSets) {
  EXPECT_EQ(parsed("(1, 2)"), "sequence'()'(1 2)");
  EXPECT_EQ(parsed("[1, 2)"), "sequence'[)'(1 2)");
  EXPECT_EQ(parsed("]1, 2]"), "sequence'(]'(1 2)");
  EXPECT_EQ(parsed("((1))"), "1");
  EXPECT_EQ(parsed(R"(\{1, 2\})"), "set(1 2)");
  EXPECT_EQ(parsed(R"(\emptyset)"), "set()");
  EXPECT_EQ(parsed("1, 2 and 3"), "list(1 2 3)");
  EXPECT_EQ(parsed(R"((1,2)\cup(3,4)\cup(5,6))"), "join'cup'(sequence'()'(1 2) sequence'()'(3 4) sequence'()'(5 6))");
  EXPECT_EQ(parsed("0 <= x < 1"), "relation'l<'(0 x 1)");
  EXPECT_EQ(parsed(R"(x \in [0, 1])"), "relation'e'(x sequence'[]'(0 1))");
  EXPECT_EQ(parsed(R"(\begin{pmatrix}1 & 2 \\ 3 & 4\end{pmatrix})"), "matrix(sequence'()'(1 2) sequence'()'(3 4))");
}

TEST(MathExpression, UnitsAreDropped) {
  for (const char* text : {"5 cm", "5cm", R"(5\text{ cm}^2)", R"(5 \mathrm{~m/s}^{2})", "5 miles per hour", "5 m/s", "$5", "5 apples."})
    EXPECT_EQ(parsed(text), "5") << text;
  EXPECT_EQ(parsed(R"(5\text{ feet and }3\text{ inches})"), "none");
  EXPECT_EQ(parsed("50\\%"), "percent(50)");
  EXPECT_EQ(parsed(R"(90^\circ)"), "fn'degree'(90)");
}

TEST(MathExpression, WordsAreTexts) {
  EXPECT_EQ(parsed(R"(\text{No solution})"), "text'no solution'()");
  EXPECT_EQ(parsed(R"(\text{(B)})"), "B");
  EXPECT_EQ(parsed("1010_{2}"), "text'1010_2'()");
}

TEST(MathExpression, RefusesWhatItCannotRead) {
  for (const char* text : {"", " ", "1 +", "(1", "1)", "2 3", "x =", R"(\frac{1})", R"(\begin{cases}1\end{cases})", R"(\begin{pmatrix}1)",
                           "^2", "a_", "1,,", "\xFF", "|x", R"(\cup)"})
    EXPECT_EQ(parsed(text), std::string_view(text) == "1,," ? "1" : "none") << text;
  EXPECT_EQ(parsed(std::string(200, 'w')), "none");
}

TEST(MathExpression, DepthIsBounded) {
  const auto nested = [](int depth, std::string_view open, std::string_view close) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += open;
    text += "1";
    for (int i = 0; i < depth; ++i) text += close;
    return text;
  };
  EXPECT_EQ(parsed(nested(30, "(", ")")), "1");
  EXPECT_EQ(parsed(nested(1000, "(", ")")), "none");
  EXPECT_EQ(parsed(nested(300, "\\sqrt{", "}")), "none");
  EXPECT_EQ(parsed(nested(2000, "-", "")), "none");
  EXPECT_EQ(parsed(nested(1000, "1^{", "}")), "none");
  EXPECT_EQ(parsed(nested(2000, "", "!")), "none");
  EXPECT_EQ(parsed(nested(500, "\\text{", "}")), "1");
}

}  // namespace
}  // namespace kedge
