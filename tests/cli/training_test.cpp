#include "cli/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge::cli {
namespace {

using kedge::testing::error_of;
using ::testing::ElementsAre;

TEST(Training, ForkIsTakenWhereverItStands) {
  Arguments apart = {"run.yaml", "--fork", "there", "a=1"}, joined = {"--fork=there", "a=1"}, none = {"a=1"}, cut = {"--fork"};
  EXPECT_EQ(take_fork(apart), Path("there"));
  EXPECT_THAT(apart, ElementsAre("run.yaml", "a=1"));
  EXPECT_EQ(take_fork(joined), Path("there"));
  EXPECT_THAT(joined, ElementsAre("a=1"));
  EXPECT_EQ(take_fork(none), std::nullopt);
  EXPECT_EQ(error_of([&] { return take_fork(cut); }), "--fork: expected the folder of a checkpoint");
}

}  // namespace
}  // namespace kedge::cli
