#include "kedge/core/logarithm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kedge {
namespace {

// The double of the same library is right to many more bits than a float has.
TEST(Logarithm, IsRightToTheLastBits) {
  for (int i = -1490; i <= 1270; ++i) {
    const auto x = static_cast<float>(std::pow(2.0, 0.1 * i) * (1 + 1e-3 * (i % 7)));
    if (x == 0) continue;
    EXPECT_FLOAT_EQ(natural_log(x), static_cast<float>(std::log(static_cast<double>(x)))) << x;
    EXPECT_FLOAT_EQ(binary_log(x), static_cast<float>(std::log2(static_cast<double>(x)))) << x;
  }
  EXPECT_EQ(natural_log(1), 0);
  EXPECT_EQ(binary_log(8), 3);
}

TEST(Logarithm, KnowsTheEnds) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(natural_log(0), -kInfinity);
  EXPECT_EQ(binary_log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(natural_log(-1)));
  EXPECT_TRUE(std::isnan(natural_log(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace kedge
