#include "kedge/core/stop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using namespace std::chrono_literals;

TEST(StopSignals, TheFirstSignalSetsAFlag) {
  const StopSignals stop;
  EXPECT_FALSE(stop.received().has_value());
  std::raise(SIGTERM);
  EXPECT_EQ(stop.received(), SIGTERM);
}

TEST(StopSignals, ASecondSignalEndsAtOnce) {
  const auto twice = [] {
    const StopSignals stop;
    std::raise(SIGUSR1);
    std::raise(SIGINT);
    std::exit(0);
  };
  EXPECT_EXIT(twice(), ::testing::ExitedWithCode(130), "");
}

TEST(StopSignals, AfterwardsTheOldHandlersAreBack) {
  { const StopSignals stop; }
  EXPECT_EXIT(std::raise(SIGTERM), ::testing::KilledBySignal(SIGTERM), "");
}

TEST(StopSignals, AClosedTerminalIsASignalUnlessItIsIgnored) {
  const auto before = std::signal(SIGHUP, SIG_DFL);
  {
    const StopSignals stop;
    std::raise(SIGHUP);
    EXPECT_EQ(stop.received(), SIGHUP);
  }
  std::signal(SIGHUP, SIG_IGN);  // nohup
  {
    const StopSignals stop;
    std::raise(SIGHUP);
    EXPECT_FALSE(stop.received().has_value());
  }
  EXPECT_EQ(std::signal(SIGHUP, before), SIG_IGN);
  EXPECT_EQ(exit_code_of(SIGHUP), 129);
}

TEST(StopSignals, APipeThatNobodyReadsAnyMoreEndsNothing) {
  const auto before = std::signal(SIGPIPE, SIG_DFL);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  {
    const StopSignals stop;
    EXPECT_EQ(::write(ends[1], "a", 1), -1);
    EXPECT_FALSE(stop.received().has_value());
  }
  ::close(ends[1]);
  EXPECT_EQ(std::signal(SIGPIPE, before), SIG_DFL);
}

TEST(StopSignals, ExitCodesTellTheSignal) {
  EXPECT_EQ(exit_code_of(SIGTERM), 143);
  EXPECT_EQ(exit_code_of(SIGUSR1), 138);
  EXPECT_EQ(name_of_signal(SIGTERM), "SIGTERM");
}

TEST(StopQuestion, ASignalThatCameEndsAWaitByName) {
  check_stop({}, "the server");
  const StopSignals stop;
  const StopQuestion question = [&] { return stop.received(); };
  check_stop(question, "the server");
  std::raise(SIGTERM);
  try {
    check_stop(question, "the server");
    ADD_FAILURE() << "it goes on waiting";
  } catch (const Error&) {
    ADD_FAILURE() << "who tries again after an error would";
  } catch (const Interrupted& interrupted) {
    EXPECT_STREQ(interrupted.what(), "SIGTERM received while the server was unavailable");
    EXPECT_EQ(interrupted.signal(), SIGTERM);
  }
}

TEST(RunTimer, ParsesDaysHoursMinutesSeconds) {
  EXPECT_EQ(parse_time_limit("00:00:00:05", "max_time_per_run"), 5s);
  EXPECT_EQ(parse_time_limit("1:2:3:4", "max_time_per_run"), 86400s + 7200s + 180s + 4s);
  EXPECT_EQ(parse_time_limit("00:03:45:00", "max_time_per_run"), 13500s);
  for (const char* bad : {"", "5", "00:00:05", "1:2:3:4:5", "a:0:0:0", "0:0:0:", ":0:0:0", "0:0:0:-1", "0:0:0:1.5", "9999999:0:0:0"})
    EXPECT_EQ(testing::error_of([&] { return parse_time_limit(bad, "max_time_per_run"); }),
              std::string("max_time_per_run: expected a time as DD:HH:MM:SS, found \"") + bad + "\"");
}

TEST(RunTimer, IsOverWhenItsTimeHasCome) {
  const auto start = RunTimer::Clock::now();
  const RunTimer timer(10s, start);
  EXPECT_FALSE(timer.is_over(start + 9s));
  EXPECT_TRUE(timer.is_over(start + 10s));
  EXPECT_FALSE(RunTimer().is_over(start + 1000h));
}

}  // namespace
}  // namespace kedge
