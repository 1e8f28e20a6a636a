#include "kedge/inspect/server_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge {
namespace {

using ::testing::ElementsAre;

TEST(ServerNumbers, ReadsOurLinesAndPassesOverOthers) {
  const auto numbers = read_server_numbers(
      "# HELP kedge_rows_total Rows.\n# TYPE kedge_rows_total counter\nkedge_rows_total{model=\"a b\"} 12\nkedge_ready 1\nother 3\n"
      "kedge_bad\nkedge_bad x\nkedge_bad{ 3\nkedge_nan nan\n\nkedge_last 2.5");
  EXPECT_THAT(numbers, ElementsAre(ServerNumber{"kedge_rows_total", "model=\"a b\"", 12}, ServerNumber{"kedge_ready", "", 1},
                                   ServerNumber{"kedge_last", "", 2.5}));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "kedge_x 1\n";
  EXPECT_EQ(read_server_numbers(many).size(), 256U);
}

}  // namespace
}  // namespace kedge
