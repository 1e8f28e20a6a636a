#include "kedge/dist/heartbeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

Heartbeats three_ranks(const HeartbeatLimits& limits = {}) {
  Heartbeats beats({"rank 0", "rank 1 (pid 12 on b)", "rank 2 (pid 13 on c)"}, limits);
  for (int rank = 0; rank < 3; ++rank) beats.watch(rank);
  return beats;
}

TEST(Heartbeats, ARankThatIsSilentForLongIsNamed) {
  Heartbeats beats = three_ranks({.period = 1s, .silence = 3s});
  for (int second = 0; second < 2; ++second) {
    beats.heard(0, {});
    beats.heard(2, {});
    beats.pass(1s);
  }
  EXPECT_THAT(beats.silent_ranks(), IsEmpty());
  beats.heard(0, {});
  beats.heard(2, {});
  beats.pass(1s);
  EXPECT_THAT(beats.silent_ranks(), ElementsAre(1));
}

TEST(Heartbeats, OneThatIsHeardAgainIsNot) {
  Heartbeats beats = three_ranks({.period = 1s, .silence = 3s});
  beats.pass(2s);
  for (int rank = 0; rank < 3; ++rank) beats.heard(rank, {});
  beats.pass(2s);
  EXPECT_THAT(beats.silent_ranks(), IsEmpty());
}

TEST(Heartbeats, ARankThatHasLeftOrNeverJoinedIsNotMissed) {
  Heartbeats beats({"rank 0", "rank 1", "rank 2"}, {.period = 1s, .silence = 3s});
  beats.watch(0);
  beats.watch(1);
  beats.forget(1);
  for (int second = 0; second < 10; ++second) beats.pass(1s);
  EXPECT_THAT(beats.silent_ranks(), ElementsAre(0));
}

TEST(Heartbeats, TheOwnSleepIsNotCounted) {
  Heartbeats beats = three_ranks({.period = 1s, .silence = 20s});
  beats.pass(std::chrono::hours(10));
  EXPECT_THAT(beats.silent_ranks(), IsEmpty());
  for (int second = 0; second < 17; ++second) beats.pass(1s);
  EXPECT_THAT(beats.silent_ranks(), IsEmpty());
  beats.pass(1s);
  EXPECT_THAT(beats.silent_ranks(), ElementsAre(0, 1, 2));
}

TEST(Heartbeats, ThoseWhoKeepTheOthersWaitingAreNamedInAWarningThatIsRepeated) {
  Heartbeats beats = three_ranks({.period = 1s, .stall = 1min, .stall_repeat = 10s});
  std::string warnings;
  for (int second = 0; second < 75; ++second) {
    beats.heard(0, {7, "all_reduce sum"});
    beats.heard(1, {4, ""});
    beats.heard(2, {7, "all_reduce sum"});
    beats.pass(1s);
    if (const std::string warning = beats.stall_warning(); !warning.empty()) warnings += warning + "\n";
  }
  EXPECT_EQ(warnings,
            "rank 0 has waited in all_reduce sum for 60 s; not there: rank 1 (pid 12 on b)\n"
            "rank 0 has waited in all_reduce sum for 70 s; not there: rank 1 (pid 12 on b)\n");
}

TEST(Heartbeats, ManyShortWaitsAreNoLongOne) {
  Heartbeats beats = three_ranks({.period = 1s, .stall = 1min});
  for (uint64_t second = 0; second < 300; ++second) {
    for (int rank = 0; rank < 2; ++rank) beats.heard(rank, {second / 30, "barrier"});
    beats.heard(2, {});
    beats.pass(1s);
    EXPECT_EQ(beats.stall_warning(), "");
  }
}

TEST(Heartbeats, AllRanksInOneLongCallAreNotStalled) {
  Heartbeats beats = three_ranks({.period = 1s, .stall = 1min});
  for (int second = 0; second < 300; ++second) {
    for (int rank = 0; rank < 3; ++rank) beats.heard(rank, {1, "barrier"});
    beats.pass(1s);
    EXPECT_EQ(beats.stall_warning(), "");
  }
}

}  // namespace
}  // namespace kedge
