#include "kedge/text/jinja/jinja_arguments.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge::jinja {
namespace {

using kedge::testing::error_of;

TEST(JinjaArguments, MatchesByPlaceAndByName) {
  const Arguments arguments{{1}, {{"c", 3}}};
  const Bound bound("f", arguments, {"a", "b", "c"}, 1);
  EXPECT_EQ(bound.integer(0), 1);
  EXPECT_FALSE(bound.given(1));
  EXPECT_TRUE(bound[1].is_missing());
  EXPECT_EQ(bound.integer(1, 7), 7);
  EXPECT_EQ(bound.integer(2), 3);
  EXPECT_TRUE(bound.flag(0));
  EXPECT_FALSE(bound.flag(1));
}

TEST(JinjaArguments, RefusesWhatDoesNotFit) {
  EXPECT_EQ(error_of<Fault>([] { return Bound("f", {{1, 2}, {}}, {"a"}); }), "f() takes at most 1 argument(s), found 2");
  EXPECT_EQ(error_of<Fault>([] { return Bound("f", {{}, {}}, {"a"}, 1); }), "f() misses its argument 1");
  EXPECT_EQ(error_of<Fault>([] { return Bound("f", {{}, {{"x", 1}}}, {"a"}); }), "f() got an unexpected keyword argument 'x'");
  EXPECT_EQ(error_of<Fault>([] { return Bound("f", {{1}, {{"a", 1}}}, {"a"}); }), "f() got multiple values for argument 'a'");
}

TEST(JinjaArguments, RefusesTheWrongKind) {
  const Arguments arguments{{1, "x"}, {}};
  const Bound bound("f", arguments, {"", ""});
  EXPECT_EQ(error_of<Fault>([&] { return bound.text(0); }), "f() argument 1 must be str, not int");
  EXPECT_EQ(error_of<Fault>([&] { return bound.integer(1); }), "f(): 'str' object cannot be interpreted as an integer");
  EXPECT_EQ(bound.text(1), "x");
}

}  // namespace
}  // namespace kedge::jinja
