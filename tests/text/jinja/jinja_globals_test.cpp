#include "kedge/text/jinja/jinja_globals.h"

#include <gtest/gtest.h>

#include "kedge/text/jinja/jinja_access.h"
#include "kedge/text/jinja/jinja_print.h"

#include "tests/support/expect_error.h"

namespace kedge::jinja {
namespace {

using kedge::testing::error_of;

class JinjaGlobals : public ::testing::Test {
 protected:
  JinjaGlobals() {
    std::tm now{};
    now.tm_year = 124, now.tm_mon = 6, now.tm_mday = 6, now.tm_hour = 9, now.tm_wday = 6;
    add_globals(variables_, spaces_, now);
  }
  Value called(const std::string& name, Arguments arguments = {}) { return call(variables_.at(name), arguments); }

  std::deque<Namespace> spaces_;
  Variables variables_;
};

TEST_F(JinjaGlobals, RangeIsBounded) {
  EXPECT_EQ(to_text(called("range", {{5, 0, -2}, {}})), "range(5, 0, -2)");
  EXPECT_EQ(error_of<Fault>([&] {
              return called("range", {{100'001}, {}});
            }),
            "Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).");
  EXPECT_EQ(error_of<Fault>([&] { return called("range", {{0, 1, 0}, {}}); }), "range() arg 3 must not be zero");
}

TEST_F(JinjaGlobals, DictTakesPairsAndNames) {
  EXPECT_EQ(to_text(called("dict", {{Value::list({Value::tuple({"a", 1})})}, {{"b", 2}}})), "{'a': 1, 'b': 2}");
  EXPECT_EQ(to_text(call(get_attribute(variables_.at("dict"), "fromkeys"), {{"ab"}, {}})), "{'a': None, 'b': None}");
  EXPECT_EQ(error_of<Fault>([&] {
              return called("dict", {{Value::list({"abc"})}, {}});
            }),
            "dictionary update sequence element has length 3; 2 is required");
}

TEST_F(JinjaGlobals, NamespacesHoldWhatIsSet) {
  const Value space = called("namespace", {{}, {{"a", 1}}});
  set_attribute(space.space(), "b", "x");
  EXPECT_EQ(to_text(space), "<Namespace {'a': 1, 'b': 'x'}>");
  EXPECT_EQ(error_of<Fault>([&] {
              set_attribute(space.space(), "_c", 1);
              return 0;
            }),
            "a namespace cannot store the underscore-prefixed attribute '_c'");
  set_attribute(space.space(), "self", space);
  EXPECT_EQ(error_of<Fault>([&] { return to_text(space); }), "a namespace that holds itself has no text");
}

TEST_F(JinjaGlobals, CyclerAndJoinerRemember) {
  const Value cycler = called("cycler", {{"a", "b"}, {}});
  std::string out;
  for (int i = 0; i < 3; ++i) out += to_text(call(get_attribute(cycler, "next"), {}));
  EXPECT_EQ(out + to_text(get_attribute(cycler, "current")), "abab");
  static_cast<void>(call(get_attribute(cycler, "reset"), {}));
  EXPECT_EQ(to_text(get_attribute(cycler, "current")), "a");
  const Value joiner = called("joiner", {{"|"}, {}});
  EXPECT_EQ(to_text(call(joiner, {})) + to_text(call(joiner, {})), "|");
}

TEST_F(JinjaGlobals, TimeIsFormattedAsPythonFormatsIt) {
  EXPECT_EQ(to_text(called("strftime_now", {{"%d %b %Y %-d %H.%f%z|%%"}, {}})), "06 Jul 2024 6 09.000000|%");
}

TEST_F(JinjaGlobals, TheTemplatesOwnErrorsComeThrough) {
  EXPECT_EQ(error_of<Fault>([&] { return called("raise_exception", {{"roles must alternate"}, {}}); }), "roles must alternate");
  EXPECT_EQ(error_of<Fault>([&] { return called("lipsum"); }), "the function lipsum is not supported");
}

TEST_F(JinjaGlobals, VariablesComeFirst) {
  Variables given = {{"range", Value(1)}};
  add_globals(given, spaces_, {});
  EXPECT_EQ(given.at("range").integer(), 1);
}

}  // namespace
}  // namespace kedge::jinja
