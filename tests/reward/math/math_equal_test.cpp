#include "kedge/reward/math/math_equal.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

bool same(std::string_view a, std::string_view b) {
  const auto left = parse_math(a), right = parse_math(b);
  EXPECT_TRUE(left.has_value()) << a;
  EXPECT_TRUE(right.has_value()) << b;
  const bool forth = same_answer(*left, *right, 1e-6);
  EXPECT_EQ(forth, same_answer(*right, *left, 1e-6)) << a << " and " << b;
  return forth;
}

TEST(MathEqual, ExpressionsAreEqualByValue) {
  EXPECT_TRUE(same("(x+1)^2", "x^2+2x+1"));
  EXPECT_FALSE(same("(x+1)^2", "x^2+1"));
  EXPECT_FALSE(same("x", "y"));
  EXPECT_FALSE(same(R"(\lambda)", R"(\xi)"));  // no two names have the same value everywhere
  EXPECT_FALSE(same("J", "b_0"));
  EXPECT_FALSE(same(R"(2\psi)", "2x_1"));
  EXPECT_TRUE(same(R"(\frac{x^2-1}{x-1})", "x+1"));
  EXPECT_FALSE(same(R"(\sqrt{x^2})", "x"));  // not for negative x
  EXPECT_TRUE(same("x^{50}", "(x^{25})^2"));
}

TEST(MathEqual, OrderCountsInTuplesOnly) {
  EXPECT_TRUE(same(R"(\{1,2\})", R"(\{2,1\})"));
  EXPECT_TRUE(same("1, 2", "2, 1"));
  EXPECT_FALSE(same("(1,2)", "(2,1)"));
  EXPECT_FALSE(same(R"(\{1,1,2\})", R"(\{1,2,2\})"));
  EXPECT_TRUE(same("1, 2", "(1, 2)"));
  EXPECT_FALSE(same("2, 1", "(1, 2)"));
  EXPECT_TRUE(same(R"(\{(1,2),(3,4)\})", R"(\{(3,4),(1,2)\})"));
}

TEST(MathEqual, IntervalsAreEqualToTheirInequalities) {
  EXPECT_TRUE(same("(2,5]", "2 < x <= 5"));
  EXPECT_TRUE(same("(2,5]", "5 >= x > 2"));
  EXPECT_FALSE(same("(2,5]", "2 <= x <= 5"));
  EXPECT_TRUE(same(R"((-\infty, 3))", "x < 3"));
  EXPECT_TRUE(same(R"([3, \infty))", "3 <= x"));
  EXPECT_FALSE(same("2 < x > 5", "(2,5)"));
  EXPECT_TRUE(same(R"(\mathbb{R})", R"((-\infty,\infty))"));
}

TEST(MathEqual, EquationsAreEqualUpToAFactor) {
  EXPECT_TRUE(same("2x + y = 4", "y = 4 - 2x"));
  EXPECT_TRUE(same("x^2 + y^2 = 1", "1 = y^2 + x^2"));
  EXPECT_FALSE(same("x + y = 1", "x + y = 2"));
  EXPECT_TRUE(same("-x < -3", "x > 3"));
  EXPECT_FALSE(same("-x < -3", "x < 3"));
  EXPECT_TRUE(same("x = 5", "5"));
  EXPECT_TRUE(same("2 + 3 = 5", "5"));
  EXPECT_FALSE(same("x = 5", "y = 5"));
  EXPECT_FALSE(same("x + y = 5", "5"));
}

TEST(MathEqual, PlusMinusIsTwoValues) {
  EXPECT_TRUE(same(R"(1 \pm 2)", "3, -1"));
  EXPECT_TRUE(same(R"(x = 1 \pm 2)", "x = -1 or x = 3"));
  EXPECT_FALSE(same(R"(1 \pm 2)", "3"));
  EXPECT_TRUE(same(R"(1 \pm 2)", R"(1 \mp 2)"));
}

TEST(MathEqual, UnionsMatricesTextsAndPercents) {
  EXPECT_TRUE(same(R"((1,2)\cup(3,4))", R"((3,4)\cup(1,2))"));
  EXPECT_FALSE(same(R"((1,2)\cap(3,4))", R"((3,4)\cup(1,2))"));
  EXPECT_TRUE(same(R"(\mathbb{R}\setminus\{0\})", R"((-\infty,\infty)\setminus\{0\})"));
  EXPECT_TRUE(same(R"(\begin{pmatrix}1\\2\end{pmatrix})", "(1,2)"));
  EXPECT_FALSE(same(R"(\begin{pmatrix}1&2\\3&4\end{pmatrix})", "(1,2,3,4)"));
  EXPECT_TRUE(same("Evelyn", R"(\text{evelyn})"));
  EXPECT_FALSE(same("Evelyn", "5"));
  EXPECT_TRUE(same("50%", "0.5"));
  EXPECT_TRUE(same("50%", "50"));
  EXPECT_FALSE(same("50%", "0.5%"));
  EXPECT_TRUE(same("-5%", "-5"));
  EXPECT_TRUE(same("2/3%", "1/150"));
}

TEST(MathEqual, WhatTakesTooLongIsNotEqual) {
  std::string ones = "1", twos = "1";
  for (int i = 0; i < 1900; ++i) ones += ";1", twos += ";2";
  EXPECT_FALSE(same(ones, twos));
  std::string sums = "x";
  for (int i = 0; i < 1900; ++i) sums += "+x";
  EXPECT_TRUE(same(sums, "1901x"));
}

}  // namespace
}  // namespace kedge
