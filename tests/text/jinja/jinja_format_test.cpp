#include "kedge/text/jinja/jinja_format.h"

#include <gtest/gtest.h>

#include "kedge/text/jinja/jinja_print.h"

#include "tests/support/expect_error.h"

namespace kedge::jinja {
namespace {

using kedge::testing::error_of;

std::string printed(std::string_view format, const Value& values) { return to_text(printf_format(Value(format), values)); }
std::string braced(std::string_view format, Arguments arguments) { return to_text(brace_format(Value(format), arguments)); }

TEST(JinjaFormat, PercentFillsPlaces) {
  EXPECT_EQ(printed("%s and %r", Value::tuple({"x", "y"})), "x and 'y'");
  EXPECT_EQ(printed("%5d|%-5d|%05d|%+d", Value::tuple({1, 2, 3, 4})), "    1|2    |00003|+4");
  EXPECT_EQ(printed("%.2f %e %g", Value::tuple({3.14159, 12345.678, 0.00001})), "3.14 1.234568e+04 1e-05");
  EXPECT_EQ(printed("%x %X %o %c%c", Value::tuple({255, 255, 8, 65, "é"})), "ff FF 10 Aé");
  EXPECT_EQ(printed("%d%%", 5), "5%");
  EXPECT_EQ(printed("%(a)s", Value::from_json(Json::parse(R"({"a": 1})"))), "1");
  EXPECT_EQ(printed("%*d|%.*f", Value::tuple({4, 1, 1, 2.25})), "   1|2.2");
  EXPECT_EQ(printed("%.2s|%4s", Value::tuple({"é世x", "a"})), "é世|   a");
}

TEST(JinjaFormat, PercentWantsAsManyValuesAsPlaces) {
  EXPECT_EQ(error_of<Fault>([] { return printed("%s", Value::tuple({1, 2})); }), "not all arguments converted during string formatting");
  EXPECT_EQ(error_of<Fault>([] { return printed("%s %s", 1); }), "not enough arguments for format string");
  EXPECT_EQ(error_of<Fault>([] { return printed("%d", "x"); }), "%d format: a real number is required, not str");
  EXPECT_EQ(error_of<Fault>([] { return printed("%", 1); }), "incomplete format");
  EXPECT_EQ(printed("plain", Value::list({1})), "plain");  // a list counts as a mapping here
}

TEST(JinjaFormat, BracesTakePlacesAndNames) {
  EXPECT_EQ(braced("{} {}", {{1, "a"}, {}}), "1 a");
  EXPECT_EQ(braced("{1} {0} {x}", {{1, 2}, {{"x", "y"}}}), "2 1 y");
  EXPECT_EQ(braced("{{}} {0[0]} {0[1][k]}", {{Value::list({7, Value::from_json(Json::parse(R"({"k": 8})"))})}, {}}), "{} 7 8");
  EXPECT_EQ(braced("{!r:>5}", {{"a"}, {}}), "  'a'");
  EXPECT_EQ(error_of<Fault>([] { return braced("{}", {}); }), "Replacement index 0 out of range for positional args tuple");
  EXPECT_EQ(error_of<Fault>([] { return braced("{x}", {}); }), "KeyError: 'x'");
  EXPECT_EQ(error_of<Fault>([] { return braced("{", {}); }), "Single '{' encountered in format string");
  EXPECT_EQ(error_of<Fault>([] { return braced("}", {}); }), "Single '}' encountered in format string");
  EXPECT_EQ(error_of<Fault>([] {
              return braced("{} {0}", {{1}, {}});
            }),
            "cannot switch between manual field specification and automatic field numbering");
}

TEST(JinjaFormat, SpecificationsAreThoseOfPython) {
  EXPECT_EQ(braced("{:>5}|{:<5}|{:^5}|{:*^5}", {{1, 2, 3, "x"}, {}}), "    1|2    |  3  |**x**");
  EXPECT_EQ(braced("{:05d}|{:+}|{:,}|{:_}|{:#x}|{:b}", {{42, 5, 1234567, 1000, 255, 5}, {}}), "00042|+5|1,234,567|1_000|0xff|101");
  EXPECT_EQ(braced("{:.3f}|{:e}|{:%}|{:10.2f}|{:.2}|{:.3}", {{3.14159, 1234.5, 0.25, 2.5, 3.14159, 100.0}, {}}),
            "3.142|1.234500e+03|25.000000%|      2.50|3.1|1e+02");
  EXPECT_EQ(braced("{:{w}}|", {{1}, {{"w", 4}}}), "   1|");
  EXPECT_EQ(braced("{:.2}|{:é>3}", {{"abc", "x"}, {}}), "ab|ééx");
  EXPECT_EQ(error_of<Fault>([] { return braced("{:d}", {{"x"}, {}}); }), "Unknown format code 'd' for object of type 'str'");
  EXPECT_EQ(error_of<Fault>([] {
              return braced("{:>5}", {{Value::list({})}, {}});
            }),
            "unsupported format string passed to list.__format__");
}

TEST(JinjaFormat, WidthsAreBounded) {
  EXPECT_EQ(error_of<Fault>([] { return braced("{:99999999999}", {{1}, {}}); }), "a format wider than 1000000 characters");
  EXPECT_EQ(error_of<Fault>([] { return printed("%99999999999d", 1); }), "a format wider than 1000000 characters");
}

}  // namespace
}  // namespace kedge::jinja
