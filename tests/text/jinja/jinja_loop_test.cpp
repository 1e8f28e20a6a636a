#include "kedge/text/jinja/jinja_loop.h"

#include <gtest/gtest.h>

#include "kedge/text/jinja/jinja_access.h"
#include "kedge/text/jinja/jinja_list_filters.h"
#include "kedge/text/jinja/jinja_ops.h"
#include "kedge/text/jinja/jinja_print.h"

#include "tests/support/expect_error.h"

namespace kedge::jinja {
namespace {

using kedge::testing::error_of;

// What the names after `loop.` are in each round.
std::string rounds(const Value& over, const std::vector<std::string>& names) {
  LoopState loop(over, 0);
  std::string out;
  for (Value item; loop.advance(item);)
    for (const std::string& name : names) out += to_text(*loop.attribute(name)) + (name == names.back() ? ";" : " ");
  return out;
}

TEST(JinjaLoop, CountsBothWays) {
  EXPECT_EQ(rounds("ab", {"index", "index0", "revindex", "revindex0", "length"}), "1 0 2 1 2;2 1 1 0 2;");
  EXPECT_EQ(rounds("ab", {"first", "last"}), "True False;False True;");
}

TEST(JinjaLoop, SeesItsNeighbours) { EXPECT_EQ(rounds("abc", {"previtem", "nextitem"}), " b;a c;b ;"); }

TEST(JinjaLoop, AGeneratorIsReadAheadOnlyWhenAsked) {
  int read = 0;
  const auto numbers = [&] {
    return Value::iterator("generator", 0, [&read, at = 0](Value& item) mutable {
      if (at == 3) return false;
      ++read;
      item = Value(at++);
      return true;
    });
  };
  LoopState loop(numbers(), 0);
  Value item;
  ASSERT_TRUE(loop.advance(item));
  EXPECT_EQ(read, 1);
  EXPECT_FALSE(truth(*loop.attribute("last")));
  EXPECT_EQ(read, 2);
  EXPECT_EQ(loop.length(), 3);
  EXPECT_EQ(read, 3);
  EXPECT_EQ(rounds(numbers(), {"index", "nextitem", "length"}), "1 1 3;2 2 3;3  3;");
}

TEST(JinjaLoop, CyclesAndNoticesChanges) {
  LoopState loop("aab", 0);
  std::string out;
  for (Value item; loop.advance(item);) out += to_text(loop.cycle({{1, 2}, {}})) + to_text(loop.changed({{item}, {}})) + " ";
  EXPECT_EQ(out, "1True 2False 1True ");
  EXPECT_EQ(error_of<Fault>([&] { return loop.cycle({}); }), "no items for cycling given");
}

TEST(JinjaLoop, AnEndedLoopKeepsNothing) {
  const auto loop = std::make_shared<LoopState>("a", 0);
  Value item;
  loop->advance(item);
  static_cast<void>(loop->changed({{loop_object(loop)}, {}}));
  EXPECT_EQ(loop.use_count(), 5);  // this one and those of the object's functions
  loop->end();
  EXPECT_EQ(loop.use_count(), 1);
  EXPECT_EQ(error_of<Fault>([&] { return loop->changed({}); }), "loop.changed after the end of its loop is not supported");
}

TEST(JinjaLoop, TheObjectPrintsAndIsCalled) {
  const auto loop = std::make_shared<LoopState>("ab", 2);
  Value item;
  loop->advance(item);
  const Value object = loop_object(loop);
  EXPECT_EQ(to_text(object), "<LoopContext 1/2>");
  EXPECT_EQ(length(object), 2);
  EXPECT_EQ(get_attribute(object, "depth").integer(), 3);
  EXPECT_TRUE(get_attribute(object, "nope").is_undefined());
  EXPECT_EQ(error_of<Fault>([&] {
              return call(object, {{"x"}, {}});
            }),
            "The loop must have the 'recursive' marker to be called recursively.");
  loop->recurse = [](const Value& inner) { return Value("<" + to_text(inner) + ">"); };
  EXPECT_EQ(to_text(call(object, {{"x"}, {}})), "<x>");
}

}  // namespace
}  // namespace kedge::jinja
