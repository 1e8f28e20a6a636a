#include "kedge/reward/math/rational.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace kedge {
namespace {

Rational fraction(int64_t top, int64_t bottom) { return *Rational::make(top, bottom); }

TEST(Rational, IsReducedWithAPositiveDenominator) {
  EXPECT_EQ(fraction(6, -8), fraction(-3, 4));
  EXPECT_EQ(fraction(0, -8), Rational(0));
  EXPECT_EQ(Rational::make(1, 0), std::nullopt);
  EXPECT_EQ(fraction(-7, 2).floor(), Rational(-4));
  EXPECT_EQ(fraction(7, 2).floor(), Rational(3));
  EXPECT_EQ(Rational(-4).floor(), Rational(-4));
}

TEST(Rational, ReadsDecimals) {
  EXPECT_EQ(Rational::of_decimal("12.50"), fraction(25, 2));
  EXPECT_EQ(Rational::of_decimal(".5"), fraction(1, 2));
  EXPECT_EQ(Rational::of_decimal("007"), Rational(7));
  EXPECT_EQ(Rational::of_decimal(std::string(60, '9')), std::nullopt);
  EXPECT_EQ(Rational::of_decimal("0." + std::string(60, '0')), std::nullopt);
}

TEST(Rational, Calculates) {
  EXPECT_EQ(fraction(1, 2).plus(fraction(1, 3)), fraction(5, 6));
  EXPECT_EQ(fraction(2, 3).times(fraction(-3, 4)), fraction(-1, 2));
  EXPECT_EQ(fraction(-2, 3).inverse(), fraction(-3, 2));
  EXPECT_EQ(Rational(0).inverse(), std::nullopt);
  EXPECT_EQ(fraction(1, 2).negated(), fraction(-1, 2));
  EXPECT_EQ(fraction(2, 3).to_power(-3), fraction(27, 8));
  EXPECT_EQ(Rational(0).to_power(-1), std::nullopt);
  EXPECT_EQ(Rational(5).to_power(0), Rational(1));
  EXPECT_EQ(Rational(1).to_power(std::numeric_limits<int64_t>::max()), Rational(1));
  EXPECT_EQ(Rational(2).to_power(std::numeric_limits<int64_t>::min()), std::nullopt);
}

TEST(Rational, HasRootsThatAreFractions) {
  EXPECT_EQ(fraction(9, 4).root(2), fraction(3, 2));
  EXPECT_EQ(Rational(-8).root(3), Rational(-2));
  EXPECT_EQ(Rational(-4).root(2), std::nullopt);
  EXPECT_EQ(Rational(2).root(2), std::nullopt);
  EXPECT_EQ(Rational(3'037'000'499).times(Rational(3'037'000'499))->root(2), Rational(3'037'000'499));
  EXPECT_EQ(Rational(7).root(0), std::nullopt);
}

TEST(Rational, WhatDoesNotFitIsAbsent) {
  EXPECT_TRUE(Rational(2).to_power(126).has_value());
  EXPECT_EQ(Rational(2).to_power(127), std::nullopt);
  const Rational big = *Rational(2).to_power(126);
  EXPECT_EQ(big.plus(big), std::nullopt);
  EXPECT_EQ(big.times(Rational(2)), std::nullopt);
  EXPECT_EQ(big.as_int64(), std::nullopt);
  EXPECT_EQ(Rational(std::numeric_limits<int64_t>::min()).as_int64(), std::numeric_limits<int64_t>::min());
}

}  // namespace
}  // namespace kedge
