#include "kedge/core/numbers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kedge {
namespace {

TEST(Numbers, AreReadStrictly) {
  double number = 0;
  for (const char* good : {"1", "-1.5", "+2", ".5", "1e3", "1.", ".inf", "-.inf"}) EXPECT_TRUE(read_number(good, number)) << good;
  EXPECT_TRUE(std::isinf(number));
  for (const char* bad : {"", "nan", ".nan", "infinity", "1x", "--1", "+-1", "e5", "0x10", "1_000"})
    EXPECT_FALSE(read_number(bad, number)) << bad;
  int64_t integer = 0;
  for (const char* bad : {"", "+", "+-1", "1.0", "9223372036854775808", " 1"}) EXPECT_FALSE(read_integer(bad, integer)) << bad;
  EXPECT_TRUE(read_integer("-9223372036854775808", integer));
}

}  // namespace
}  // namespace kedge
