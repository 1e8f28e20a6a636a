#include "kedge/net/bounded_call.h"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

namespace kedge {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(BoundedCall, GivesWhatTheWorkGives) {
  EXPECT_EQ(call_at_most<int>([] { return 7; }, hours(1), [] { return false; }), 7);
  EXPECT_THROW((void)call_at_most<int>([]() -> int { throw std::runtime_error("no such host"); }, hours(1), [] { return false; }),
               std::runtime_error);
}

TEST(BoundedCall, WorkThatHangsIsLeftBehind) {
  const auto never = std::make_shared<std::promise<int>>();
  const std::shared_future<int> answer = never->get_future().share();
  const auto hang = [answer] { return answer.get(); };
  EXPECT_EQ(call_at_most<int>(hang, milliseconds(1), [] { return false; }), std::nullopt);
  EXPECT_EQ(call_at_most<int>(hang, hours(1), [] { return true; }), std::nullopt);
  never->set_value(1);  // lets the threads end
}

}  // namespace
}  // namespace kedge
