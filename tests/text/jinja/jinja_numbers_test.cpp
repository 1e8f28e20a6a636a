#include "kedge/text/jinja/jinja_numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kedge/text/jinja/jinja_print.h"

#include "tests/support/expect_error.h"

namespace kedge::jinja {
namespace {

using kedge::testing::error_of;

TEST(JinjaNumbers, IntegersReadAsPythonReadsThem) {
  EXPECT_EQ(parse_integer(" 12\n"), 12);
  EXPECT_EQ(parse_integer("-1_000"), -1000);
  EXPECT_EQ(parse_integer("٣٤"), 34);
  EXPECT_EQ(parse_integer("ff", 16), 255);
  EXPECT_EQ(parse_integer("0xff", 16), 255);
  EXPECT_EQ(parse_integer("0b11", 0), 3);
  EXPECT_EQ(parse_integer("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  for (const char* text : {"", "-", "1.5", "1__0", "_1", "1_", "x", "0x1", "1 2"}) EXPECT_EQ(parse_integer(text), std::nullopt) << text;
  EXPECT_EQ(parse_integer("012", 0), std::nullopt);
  EXPECT_EQ(error_of<Fault>([] { return parse_integer("9223372036854775808"); }), "an integer beyond 64 bits");
}

TEST(JinjaNumbers, FloatsReadAsPythonReadsThem) {
  EXPECT_EQ(parse_real(" .5 "), 0.5);
  EXPECT_EQ(parse_real("1e3"), 1000.0);
  EXPECT_EQ(parse_real("-1_0.5"), -10.5);
  EXPECT_EQ(parse_real("1e999"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(parse_real("-Infinity"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(*parse_real("NaN")));
  for (const char* text : {"", "e5", "1e", "0x1p3", "--1", "1.2.3"}) EXPECT_EQ(parse_real(text), std::nullopt) << text;
}

TEST(JinjaNumbers, RoundingTakesTheEvenOneOfTwo) {
  EXPECT_EQ(repr(rounded(2.5, 0)), "2.0");
  EXPECT_EQ(repr(rounded(3.5, 0)), "4.0");
  EXPECT_EQ(repr(rounded(2.675, 2)), "2.67");  // 2.675 is a little less as a double
  EXPECT_EQ(repr(rounded(-0.4, 0)), "-0.0");
  EXPECT_EQ(repr(rounded(1250.0, -2)), "1200.0");
  EXPECT_EQ(repr(rounded(1250, -2)), "1200");
  EXPECT_EQ(repr(rounded(1350, -2)), "1400");
  EXPECT_EQ(repr(rounded(-1251, -2)), "-1300");
  EXPECT_EQ(repr(rounded(7, 3)), "7");
  EXPECT_EQ(repr(rounded(7, -30)), "0");
  EXPECT_EQ(repr(rounded(1e300, 400)), "1e+300");
  EXPECT_EQ(error_of<Fault>([] { return rounded("x", 0); }), "type str doesn't define __round__ method");
}

}  // namespace
}  // namespace kedge::jinja
