#include "kedge/inspect/metrics_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(FlatLine, ReadsWhatARunWrites) {
  FlatLine line;
  ASSERT_TRUE(line.read(R"({"step": 3, "time": 1700000000.25, "train_optim/loss": -0.5, "a b":1e-07,"c" : 12})"));
  EXPECT_EQ(line.step(), 3);
  EXPECT_EQ(line.time(), 1700000000.25);
  EXPECT_THAT(line.members(),
              ElementsAre(Pair("step", 3), Pair("time", 1700000000.25), Pair("train_optim/loss", -0.5), Pair("a b", 1e-07), Pair("c", 12)));
  ASSERT_TRUE(line.read(R"({"step": 4, "time": 2})"));
  EXPECT_EQ(line.members().size(), 2U);
}

TEST(FlatLine, LeavesEverythingElseToTheJsonParser) {
  FlatLine line;
  for (const char* text : {"",
                           "{}",
                           "{",
                           "[1]",
                           R"({"step": 3})",
                           R"({"time": 1, "step": 3})",
                           R"({"step": 1.5, "time": 1})",
                           R"({"step": 1e300, "time": 1})",
                           R"({"step": 3, "time": 1, "a": "NaN"})",
                           R"({"step": 3, "time": 1, "a": null})",
                           R"({"step": 3, "time": 1, "a": {}})",
                           R"({"step": 3, "time": 1, "a\n": 1})",
                           R"({"step": 3, "time": 1, "ü": 1})",
                           R"({"step": 3, "time": 1} x)",
                           R"({"step": 3, "time": 1,})",
                           R"({"step": 3, "time": 1, "a": 1.})",
                           R"({"step": 3, "time": 1, "a": .5})",
                           R"({"step": 3, "time": 1, "a": 01})",
                           R"({"step": 3, "time": 1, "a": +1})",
                           R"({"step": 3, "time": 1, "a": 1e})",
                           R"({"step": 3, "time": 1, "a": 1e999})",
                           R"({"step": 3, "time": 1, "a": -})",
                           R"({"step": 3, "time": 1, "a": 1 2})",
                           R"({"step" 3, "time": 1})",
                           R"({"step": 3 "time": 1})"})
    EXPECT_FALSE(line.read(text)) << text;
}

}  // namespace
}  // namespace kedge
