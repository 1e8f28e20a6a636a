#include "kedge/core/vectors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kedge/core/vector_sums.h"

namespace kedge::cpu {
namespace {

using Floats = VectorTypes<16>::Floats;
constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

float exp2_of(float x) {
  Floats one[1] = {Floats{} + x};
  to_exp2<16>(one);
  return one[0][3];
}
float vector_exp_of(float x) {
  Floats one[1] = {Floats{} + x};
  to_exp<16>(one);
  return one[0][3];
}

// Two units in the last of 24 bits are 2^-22 of a number at most.
TEST(Vectors, ExponentialsAreWithinTwoUnits) {
  for (int i = 0; i <= 100000; ++i) {
    const float x = -126.0F * static_cast<float>(i) / 100000.0F;
    const double wanted = std::exp2(static_cast<double>(x));
    EXPECT_NEAR(static_cast<double>(exp2_of(x)), wanted, wanted * 0x1p-22) << x;
  }
  for (int i = 0; i <= 100000; ++i) {
    const float x = 88.0F - 175.3F * static_cast<float>(i) / 100000.0F;
    const double wanted = std::exp(static_cast<double>(x));
    EXPECT_NEAR(static_cast<double>(vector_exp_of(x)), wanted, wanted * 0x1p-22) << x;
    EXPECT_EQ(vector_exp_of(x), exp_of(x)) << x;
  }
}

TEST(Vectors, WhatIsTooSmallIsExactlyNothing) {
  for (const float x : {-126.001F, -127.0F, -1e4F, -1e30F, -kInfinity, kNan}) EXPECT_EQ(exp2_of(x), 0.0F) << x;
  for (const float x : {-87.31F, -88.0F, -1e4F, -1e30F, -kInfinity, kNan}) EXPECT_EQ(vector_exp_of(x), 0.0F) << x;
  EXPECT_EQ(exp2_of(0), 1.0F);
  EXPECT_EQ(vector_exp_of(0), 1.0F);
}

TEST(Vectors, TheLargerOfTwoIsNeverTheFirstWhereItIsNoNumber) {
  const Floats a = {1, 3, kNan, -kInfinity}, b = {2, 2, 2, 2};
  const Floats found = larger<16>(a, b);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(found[i], i == 1 ? 3.0F : 2.0F);
}

TEST(Vectors, Bf16IsTheUpperHalf) {
  const VectorTypes<16>::Halves halves = {0x3F80, 0xC000, 0x7F80, 0x0000};
  const Floats found = VectorTypes<16>::widen(halves);
  EXPECT_EQ(found[0], 1.0F);
  EXPECT_EQ(found[1], -2.0F);
  EXPECT_EQ(found[2], kInfinity);
  EXPECT_EQ(found[3], 0.0F);
}

}  // namespace
}  // namespace kedge::cpu
