// Watchdogs of several ranks in one process; job_test.cpp has those of real jobs.
#include "kedge/dist/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

const std::vector<std::string> kNames = {"rank 0 (pid 10 on a)", "rank 1 (pid 11 on b)", "rank 2 (pid 12 on c)"};

// How a watchdog ended its rank.
class Ending {
 public:
  WatchdogOptions options(std::chrono::milliseconds silence = 60s) {
    WatchdogOptions options;
    options.limits.period = 20ms;
    options.limits.silence = silence;
    options.courtesy = 20ms;
    options.grace = 20ms;
    options.report = [this](const std::string& why) { set([&] { report_ = why; }); };
    options.end = [this](int exit_code) { set([&] { exit_code_ = exit_code; }); };
    return options;
  }

  // What was reported, after the rank was ended; empty if it was not.
  std::string wait(std::chrono::milliseconds limit = 30s) {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, limit, [&] { return exit_code_.has_value(); });
    return exit_code_ ? str(report_, " | ", *exit_code_) : "";
  }

 private:
  template <typename Change>
  void set(Change change) {
    const std::lock_guard lock(mutex_);
    change();
    news_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable news_;
  std::string report_;
  std::optional<int> exit_code_;
};

struct Job {
  explicit Job(std::chrono::milliseconds silence = 60s) : rank_0(kNames, std::move(listener), "secret", ending[0].options(silence)) {}

  LineSocket connect(int rank) const { return join_watchdog({"127.0.0.1"}, port, "secret", rank); }
  std::unique_ptr<Watchdog> start(int rank, std::chrono::milliseconds silence = 60s) {
    return std::make_unique<Watchdog>(kNames, connect(rank), ending[rank].options(silence));
  }

  Ending ending[3];
  LineListener listener{LineListener::Reach::machine};
  int port = listener.port();
  Watchdog rank_0;
};

TEST(Watchdog, ASilentRankIsNamedOnAllRanks) {
  Job job(300ms);
  const LineSocket silent = job.connect(1);
  const auto rank_2 = job.start(2);
  const std::string expected = "rank 1 (pid 11 on b) has not answered for 0.3 s: it is stopped, or its machine cannot be reached | 1";
  EXPECT_EQ(job.ending[0].wait(), expected);
  EXPECT_EQ(job.ending[2].wait(), expected);
}

TEST(Watchdog, ASilentRankZeroIsNamedByTheOthers) {
  LineListener listener(LineListener::Reach::machine);
  LineSocket socket = connect_line("127.0.0.1", listener.port(), 10s);
  const std::optional<LineSocket> silent = listener.accept();
  Ending ending;
  const Watchdog rank_1(kNames, std::move(socket), ending.options(300ms));
  EXPECT_THAT(ending.wait(), HasSubstr("rank 0 (pid 10 on a) has not answered for 0.3 s"));
}

TEST(Watchdog, ABrokenConnectionIsNamedOnAllRanks) {
  Job job;
  const auto rank_2 = job.start(2);
  job.connect(1).close();
  const std::string expected = "rank 1 (pid 11 on b) was killed, crashed or ended without notice | 1";
  EXPECT_EQ(job.ending[0].wait(), expected);
  EXPECT_EQ(job.ending[2].wait(), expected);
}

TEST(Watchdog, ABrokenConnectionToRankZeroIsNamed) {
  LineListener listener(LineListener::Reach::machine);
  LineSocket socket = connect_line("127.0.0.1", listener.port(), 10s);
  listener.accept()->close();
  Ending ending;
  const Watchdog rank_1(kNames, std::move(socket), ending.options());
  EXPECT_EQ(ending.wait(), "rank 0 (pid 10 on a) was killed, crashed or ended without notice | 1");
}

TEST(Watchdog, RanksThatAnswerAndSayGoodbyeAreNotReported) {
  Job job(1s);
  auto rank_1 = job.start(1, 1s);
  auto rank_2 = job.start(2, 1s);
  EXPECT_EQ(job.ending[0].wait(1500ms), "");
  rank_1.reset();
  EXPECT_EQ(job.ending[2].wait(1500ms), "") << "rank 1 has left, and is not missed";
  job.rank_0.say_goodbye(kExitOk, "");
  EXPECT_EQ(job.ending[2].wait(1500ms), "") << "nor is rank 0";
  EXPECT_EQ(job.ending[0].wait(0s), "");
}

TEST(Watchdog, ARankThatEndsWithAnErrorTellsTheOthersWhichAndItsExitCode) {
  Job job;
  const auto rank_1 = job.start(1);
  const auto rank_2 = job.start(2);
  rank_1->say_goodbye(kExitUsage, "train.jsonl:3: no \"prompt\" field\nsecond line");
  const std::string expected = "rank 1 (pid 11 on b) ended: train.jsonl:3: no \"prompt\" field second line | 2";
  EXPECT_EQ(job.ending[0].wait(), expected);
  EXPECT_EQ(job.ending[2].wait(), expected);
  EXPECT_EQ(job.ending[1].wait(0s), "");
}

TEST(Watchdog, ARankZeroThatEndsWithAnErrorTellsTheOthers) {
  Job job;
  const auto rank_1 = job.start(1);
  job.rank_0.say_goodbye(kExitWorld, "out of memory");
  EXPECT_EQ(job.ending[1].wait(), "rank 0 (pid 10 on a) ended: out of memory | 1");
}

TEST(Watchdog, WhereARankEndsByItselfNothingElseEndsIt) {
  Job job;
  WatchdogOptions options = job.ending[2].options();
  options.courtesy = 60s;
  options.grace = 60s;
  const auto rank_1 = job.start(1);
  Watchdog rank_2(kNames, job.connect(2), std::move(options));
  rank_1->say_goodbye(kExitUsage, "unknown key");
  rank_2.say_goodbye(kExitUsage, "unknown key");  // both found it
  EXPECT_EQ(job.ending[2].wait(0s), "");
}

TEST(Watchdog, StrangersAreTurnedAway) {
  Job job(300ms);
  for (const char* line : {"hello", "hello wrong 1", "hello secret 0", "hello secret 3", "hello secret x", "end 0 now", "bye 1 x", ""}) {
    LineSocket stranger = connect_line("127.0.0.1", job.port, 10s);
    stranger.send(line);
    EXPECT_EQ(stranger.wait_for_line(10s), std::nullopt) << line;
    EXPECT_FALSE(stranger.is_open()) << line;
  }
  const auto rank_1 = job.start(1);
  EXPECT_EQ(testing::error_of<Error>([&] { return job.connect(1).is_open(); }),
            str("127.0.0.1 port ", job.port, ": another program answers, or none"))
      << "there is one rank 1";
  EXPECT_EQ(job.ending[0].wait(1s), "");
}

TEST(Watchdog, WhenAllRanksHaveJoinedNobodyElseIsLetIn) {
  Job job;
  const auto rank_1 = job.start(1);
  const auto rank_2 = job.start(2);
  // The port closes a moment after the last one was let in; until then a caller is hung up on.
  std::string why;
  for (int i = 0; i < 250 && why.find("Connection refused") == std::string::npos; ++i) {
    if (i > 0) std::this_thread::sleep_for(20ms);
    why = testing::error_of<Error>([&] { return job.connect(1).is_open(); });
    ASSERT_NE(why, "");
  }
  EXPECT_THAT(why, HasSubstr("Connection refused"));
}

TEST(Watchdog, TheFirstAddressThatAnswersIsTaken) {
  Job job;
  EXPECT_TRUE(join_watchdog({"127.0.0.2", "127.0.0.1"}, job.port, "secret", 1).is_open());
  EXPECT_EQ(testing::error_of<Error>([&] { return join_watchdog({}, job.port, "secret", 2).is_open(); }), "rank 0 has no address");
}

TEST(Watchdog, TheVariableSetsTheSilenceOrSwitchesItOff) {
  EXPECT_EQ(read_watchdog_silence(nullptr), 20s);
  EXPECT_EQ(read_watchdog_silence(""), 20s);
  EXPECT_EQ(read_watchdog_silence("45"), 45s);
  EXPECT_EQ(read_watchdog_silence("0"), std::nullopt);
  for (const char* value : {"-1", "off", "2s", "1.5", "99999999999"})
    EXPECT_EQ(testing::error_of([&] { return read_watchdog_silence(value); }),
              str("KEDGE_WATCHDOG: expected seconds, or 0 for no watchdog, found \"", value, "\""));
}

TEST(Watchdog, WithoutOneThereIsNothingToEnd) {
  const WaitingScope waiting("barrier");
  end_watchdog(kExitOk);
}

}  // namespace
}  // namespace kedge
