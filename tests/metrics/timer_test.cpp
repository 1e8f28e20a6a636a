#include "kedge/metrics/timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

struct TimersTest : ::testing::Test {
  double now = 100;
  int num_waits = 0;
  Timers timers{{.synchronize = [this] { ++num_waits; }, .clock = [this] { return now; }}};

  void pass(std::string_view name, double seconds) {
    auto scope = timers.measure(name);
    now += seconds;
  }
};

TEST_F(TimersTest, SumsEachNameUntilTaken) {
  pass("generate", 2);
  pass("logprobs", 1);
  now += 50;
  pass("generate", 0.5);
  EXPECT_THAT(timers.take(), ElementsAre(Pair("timers/generate", 2.5), Pair("timers/logprobs", 1.0)));
  EXPECT_THAT(timers.take(), IsEmpty());
  pass("logprobs", 4);
  EXPECT_THAT(timers.take(), ElementsAre(Pair("timers/logprobs", 4.0)));
}

TEST_F(TimersTest, AnOuterScopeHoldsTheTimeOfTheInnerOnes) {
  {
    auto rollout = timers.measure("rollout_time");
    pass("generate", 2);
    now += 1;
  }
  EXPECT_THAT(timers.take(), ElementsAre(Pair("timers/rollout_time", 3.0), Pair("timers/generate", 2.0)));
}

TEST_F(TimersTest, AScopeInsideOneOfTheSameNameIsCountedOnce) {
  {
    auto outer = timers.measure("generate");
    pass("generate", 2);
    now += 1;
  }
  EXPECT_THAT(timers.take(), ElementsAre(Pair("timers/generate", 3.0)));
}

TEST_F(TimersTest, AScopeEndedByAnExceptionCountsAndDoesNotWaitForTheDevice) {
  try {
    auto scope = timers.measure("generate");
    now += 2;
    throw std::runtime_error("out of memory");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(num_waits, 1);
  EXPECT_THAT(timers.take(), ElementsAre(Pair("timers/generate", 2.0)));
}

TEST_F(TimersTest, TheInnermostScopeThatAnExceptionEndedIsKnown) {
  EXPECT_EQ(timers.interrupted(), "");
  const auto fail = [&] {
    const auto outer = timers.measure("outer");
    { const auto done = timers.measure("done"); }
    const auto inner = timers.measure("inner");
    throw std::runtime_error("no");
  };
  EXPECT_THROW(fail(), std::runtime_error);
  EXPECT_EQ(timers.interrupted(), "inner");
  { const auto next = timers.measure("next"); }
  EXPECT_EQ(timers.interrupted(), "");
}

TEST_F(TimersTest, StopEndsAScopeOnce) {
  {
    auto scope = timers.measure("generate");
    now += 2;
    scope.stop();
    now += 5;
    scope.stop();
  }
  EXPECT_EQ(num_waits, 2);  // at the beginning and at the end
  EXPECT_THAT(timers.take(), ElementsAre(Pair("timers/generate", 2.0)));
}

TEST_F(TimersTest, AScopeThatStillRunsGoesIntoALaterTake) {
  auto scope = timers.measure("validation_time");
  now += 2;
  EXPECT_THAT(timers.take(), IsEmpty());
  now += 3;
  scope.stop();
  EXPECT_THAT(timers.take(), ElementsAre(Pair("timers/validation_time", 5.0)));
}

TEST(Timers, ADeviceErrorAtTheEndOfAScopeIsNotLost) {
  bool fails = false;
  Timers timers({.synchronize = [&] {
    if (fails) throw std::runtime_error("device lost");
  }});
  const auto run = [&] {
    auto scope = timers.measure("generate");
    fails = true;
  };
  EXPECT_THROW(run(), std::runtime_error);
}

TEST(Timers, TheMachinesClockGoesForward) {
  Timers timers;
  { auto scope = timers.measure("generate"); }
  EXPECT_GE(timers.take().find("timers/generate").value(), 0.0);
}

constexpr std::array<std::string_view, 4> kShared = {"generate", "logprobs", "critic_wait", "init_logprobs"};

// Two ranks that took different paths: the first waited for the critic, the second computed log-probs.
TEST(Timers, TheMaximumIsOverAllRanksWhateverEachMeasured) {
  double now = 0;
  const auto rank = [&](std::vector<std::pair<std::string_view, double>> phases) {
    Timers timers({.clock = [&] { return now; }});
    for (const auto& [name, seconds] : phases) {
      auto scope = timers.measure(name);
      now += seconds;
    }
    return timers;
  };
  Timers first = rank({{"rollout_time", 9}, {"critic_wait", 1}, {"generate", 2}});
  Timers second = rank({{"logprobs", 4}, {"generate", 3}, {"rollout_time", 8}});

  std::vector<double> of_second;
  static_cast<void>(second.take(kShared, [&](std::span<double> values) { of_second.assign(values.begin(), values.end()); }));
  const Metrics taken = first.take(kShared, [&](std::span<double> values) {
    ASSERT_EQ(values.size(), of_second.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::max(values[i], of_second[i]);
  });
  EXPECT_THAT(taken, ElementsAre(Pair("timers/rollout_time", 9.0), Pair("timers/critic_wait", 1.0), Pair("timers/generate", 3.0),
                                 Pair("timers/logprobs", 4.0)));
}

}  // namespace
}  // namespace kedge
