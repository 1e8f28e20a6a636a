#include "kedge/algo/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WorkQueue, HandsOutEverySlotOnceAndCanBeFilledAgain) {
  WorkQueue queue(Group::single(), {.port = 0, .piece = 2});
  for (int round = 0; round < 2; ++round) {
    queue.fill(5);
    EXPECT_THAT(queue.take(), ElementsAre(0, 1));
    EXPECT_THAT(queue.take(), ElementsAre(2, 3));
    EXPECT_THAT(queue.take(), ElementsAre(4));
    EXPECT_THAT(queue.take(), IsEmpty());
  }
}

}  // namespace
}  // namespace kedge
