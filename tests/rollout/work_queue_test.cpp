#include "kedge/rollout/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/error.h"
#include "kedge/net/http_server.h"

#include "tests/support/expect_error.h"

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

TEST(WorkQueue, APortThatIsTakenNamesItsKey) {
  const HttpServer other({}, [](const HttpRequest&, const HttpReply&) {});
  EXPECT_EQ(testing::error_of<Error>([&] { const WorkQueue queue(Group::single(), {.port = other.port()}); }),
            str("cannot listen on 127.0.0.1:", other.port(),
                ": Address already in use; batch_iterator.port sets another port, 0 any that is free"));
}

}  // namespace
}  // namespace kedge
