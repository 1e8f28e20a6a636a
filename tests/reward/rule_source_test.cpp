#include "kedge/reward/rule_source.h"

#include <gtest/gtest.h>

#include <thread>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/rollouts.h"

namespace kedge {
namespace {

TEST(RuleSource, RewardsEachRowElsewhere) {
  std::thread::id thread;
  RuleSource source([&](const Rollout& rollout) {
    thread = std::this_thread::get_id();
    if (rollout.response.empty()) return RowReward{.error = "empty"};
    return RowReward{.value = static_cast<double>(rollout.response.size())};
  });
  const auto rewards =
      source
          .submit({testing::shared(testing::rollout("ab")), testing::shared(testing::rollout("")), testing::shared(testing::rollout("c"))})
          .get();
  ASSERT_EQ(rewards.size(), 3U);
  EXPECT_EQ(rewards[0].value, 2);
  EXPECT_EQ(rewards[1].error, "empty");
  EXPECT_EQ(rewards[2].value, 1);
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_TRUE(source.submit({}).get().empty());
}

TEST(RuleSource, ARuleThatThrowsEndsTheRun) {
  RuleSource source([](const Rollout&) -> RowReward { throw Bug("no"); });
  EXPECT_EQ(testing::error_of<Bug>([&] { return source.submit({testing::shared(testing::rollout(""))}).get(); }), "no");
}

}  // namespace
}  // namespace kedge
