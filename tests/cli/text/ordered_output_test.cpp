#include "cli/text/ordered_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kedge::cli {
namespace {

using ::testing::ElementsAre;

class Printed {
 public:
  std::vector<std::string> lines;

  LineOrder order(bool in_order) {
    return LineOrder(in_order, [this](const Json& line) { lines.push_back(line.as_text("")); });
  }
};

TEST(LineOrder, ALineWaitsForThoseBeforeIt) {
  Printed printed;
  LineOrder order = printed.order(true);
  order.expect(0, 1);
  order.expect(1, 2);
  order.ready(1, 0, "b0");
  EXPECT_THAT(printed.lines, ElementsAre());
  order.ready(0, 0, "a");
  EXPECT_THAT(printed.lines, ElementsAre("a", "b0"));
  order.expect(2, 1);
  order.ready(2, 0, "c");
  EXPECT_THAT(printed.lines, ElementsAre("a", "b0"));
  order.ready(1, 1, "b1");
  EXPECT_THAT(printed.lines, ElementsAre("a", "b0", "b1", "c"));
}

TEST(LineOrder, WithoutOrderALineIsPrintedAtOnce) {
  Printed printed;
  LineOrder order = printed.order(false);
  order.expect(0, 1);
  order.expect(1, 1);
  order.ready(1, 0, "b");
  EXPECT_THAT(printed.lines, ElementsAre("b"));
  order.ready(0, 0, "a");
  order.finish();
  EXPECT_THAT(printed.lines, ElementsAre("b", "a"));
}

TEST(LineOrder, AtTheEndNothingThatIsReadyIsLost) {
  Printed printed;
  LineOrder order = printed.order(true);
  for (int64_t index = 0; index < 3; ++index) order.expect(index, 1);
  order.ready(2, 0, "c");
  order.ready(1, 0, "b");
  order.finish();
  EXPECT_THAT(printed.lines, ElementsAre("b", "c"));
}

}  // namespace
}  // namespace kedge::cli
