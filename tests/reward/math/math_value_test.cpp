#include "kedge/reward/math/math_value.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kedge {
namespace {

std::optional<MathValue> value_of(std::string_view text, const MathPoint& point = {}) {
  MathBudget budget;
  const auto node = parse_math(text);
  EXPECT_TRUE(node.has_value()) << text;
  return node ? evaluate(*node, point, budget) : std::nullopt;
}

void expect_exact(std::string_view text, int64_t top, int64_t bottom = 1) {
  const auto value = value_of(text);
  ASSERT_TRUE(value.has_value()) << text;
  EXPECT_EQ(value->exact, Rational::make(top, bottom)) << text << " is " << value->approximate;
}

TEST(MathValue, FractionsStayExact) {
  expect_exact(R"(\frac{1}{3}+\frac16)", 1, 2);
  expect_exact("0.1+0.2", 3, 10);
  expect_exact("2^{10}-24", 1000);
  expect_exact("(2/3)^{-2}", 9, 4);
  expect_exact(R"(\sqrt{\frac{9}{4}})", 3, 2);
  expect_exact("8^{2/3}", 4);
  expect_exact(R"(\sqrt[3]{-27})", -3);
  expect_exact("5!", 120);
  expect_exact(R"(\binom{10}{3})", 120);
  expect_exact(R"(\lfloor -1.5 \rfloor)", -2);
  expect_exact(R"(\lceil 1.2 \rceil)", 2);
  expect_exact("|-3|", 3);
  expect_exact("15%", 3, 20);
  expect_exact("min(3, 2)", 2);
  expect_exact(R"(\gcd(12, 18))", 6);
}

TEST(MathValue, WhatIsNoFractionIsADouble) {
  const auto expect = [](std::string_view text, std::complex<double> wanted) {
    const auto value = value_of(text);
    ASSERT_TRUE(value.has_value()) << text;
    EXPECT_FALSE(value->exact) << text;
    EXPECT_LT(std::abs(value->approximate - wanted), 1e-12 * std::max(1.0, std::abs(wanted))) << text;
  };
  expect(R"(\sqrt{2})", std::sqrt(2.0));
  expect(R"(2\pi)", 2 * M_PI);
  expect("e^2", std::exp(2.0));
  expect(R"(\sqrt{-4})", {0, 2});
  expect("(2+i)^2", {3, 4});
  expect(R"(\ln 2)", std::log(2.0));
  expect(R"(\log_2 8)", 3);
  expect(R"(\sin 30^\circ)", 0.5);
  expect(R"(\tan^{-1} 1)", M_PI / 4);
  expect("40!", 815915283247897734345611269596115894272000000000.0);
}

TEST(MathValue, WhatHasNoValueHasNone) {
  for (const char* text : {"1/0", "0^0", "0^{-1}", R"(\ln 0)", "(1,2)", R"(\{1\})", "1<2", R"(\infty - \infty)", "(-1)!", R"(\log_1 2)"})
    EXPECT_FALSE(value_of(text)) << text;
}

TEST(MathValue, SymbolsHaveTheSameValueEverywhere) {
  for (int index = 0; index < kNumMathPoints; ++index) {
    const auto x = value_of("x", {.index = index}), y = value_of("y", {.index = index});
    EXPECT_EQ(x->exact, value_of("x", {.index = index})->exact);
    EXPECT_NE(x->exact, y->exact);
    EXPECT_EQ(x->exact->top() > 0, index % 2 == 0);
  }
  EXPECT_TRUE(has_free_symbol(*parse_math("2x")));
  EXPECT_FALSE(has_free_symbol(*parse_math(R"(2\pi e i)")));
  EXPECT_TRUE(has_plus_minus(*parse_math(R"(\frac{1\pm2}{3})")));
}

TEST(MathValue, ToleranceIsForDecimalsOnly) {
  const auto same = [](const char* a, const char* b) {
    const bool forth = same_value(*value_of(a), *value_of(b), 1e-6), back = same_value(*value_of(b), *value_of(a), 1e-6);
    EXPECT_EQ(forth, back) << a << " and " << b;
    return forth;
  };
  EXPECT_TRUE(same("0.333333", "1/3"));
  EXPECT_FALSE(same("0.33333", "1/3"));
  EXPECT_TRUE(same("1.414214", R"(\sqrt{2})"));
  EXPECT_FALSE(same("1.41421", R"(\sqrt{2})"));
  EXPECT_FALSE(same("1000000", "1000001"));
  EXPECT_FALSE(same("1234567.1", "1234567.2"));
  EXPECT_FALSE(same("0.0000001", "0.0000002"));
  EXPECT_FALSE(same("333333/1000000", "1/3"));
  EXPECT_TRUE(same(R"(\sqrt{8})", R"(2\sqrt{2})"));
  EXPECT_TRUE(same(R"(\sin \pi)", "0"));
  EXPECT_TRUE(same(R"(\infty)", R"(\infty)"));
  EXPECT_FALSE(same(R"(\infty)", R"(-\infty)"));
  EXPECT_FALSE(same(R"(\infty)", "1"));
}

TEST(MathValue, ABudgetEndsIt) {
  MathBudget budget{.num_nodes = 3};
  EXPECT_FALSE(evaluate(*parse_math("1+2+3+4"), {}, budget));
}

}  // namespace
}  // namespace kedge
