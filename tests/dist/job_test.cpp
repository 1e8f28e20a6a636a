// How a job of three ranks ends when one of them fails while the others wait for it. A hang ends in the time limit, which
// shows as exit code 124 (or 137, where not even the launcher ends).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "kedge/core/error.h"

namespace kedge {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct Ending {
  int exit_code;
  std::string output;  // both streams
};

Ending end_of(const std::string& command) {
  std::FILE* pipe = ::popen(str("timeout -k 5 60 ", command, " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw Error(str("cannot run ", command));
  std::string output;
  std::array<char, 4096> buffer{};
  while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), count);
  return {WEXITSTATUS(::pclose(pipe)), output};
}

Ending end_of_job(const std::string& how, const std::string& variables = "") {
  return end_of(str("env ", variables, " ", KEDGE_MPIRUN, " -n 3 '", KEDGE_FAILING_JOB, "' ", how));
}

std::vector<int> others_than(int rank) { return {(rank + 1) % 3, (rank + 2) % 3}; }

// "error [rank 0] rank 1 (pid 4711 on n2) ..."
std::string line_about(int rank, int reporter) { return str("error \\[rank ", reporter, "\\] rank ", rank, " \\(pid [0-9]+ on [^)]+\\) "); }

TEST(Job, EndsWellWhenAllRanksDo) {
  const Ending end = end_of_job("work");
  EXPECT_EQ(end.exit_code, 0) << end.output;
  EXPECT_THAT(end.output, HasSubstr("an unfinished line"));
}

TEST(Job, ARankThatThrowsEndsAllRanksWithItsMessage) {
  const Ending end = end_of_job("throw");
  EXPECT_EQ(end.exit_code, kExitWorld) << end.output;
  EXPECT_THAT(end.output, HasSubstr("error [rank 1] no room left on the disk\n"));
  EXPECT_THAT(end.output, HasSubstr("an unfinished line")) << "what it had printed is not lost";
}

TEST(Job, TheUsersMistakeHasItsOwnExitCode) {
  const Ending end = end_of_job("refuse");
  EXPECT_EQ(end.exit_code, kExitUsage) << end.output;
  EXPECT_THAT(end.output, HasSubstr("error [rank 1] train.jsonl:3: no \"prompt\" field\n"));
}

TEST(Job, AllRanksMayFailAtOnce) {
  const Ending end = end_of_job("all");
  EXPECT_EQ(end.exit_code, kExitUsage) << end.output;
  EXPECT_THAT(end.output, HasSubstr("] trainer.max_step: unknown key\n"));
}

// As when the mpirun of another MPI starts it: there are three processes, and each finds itself alone.
TEST(Job, RanksThatMpiDoesNotConnectAreRefused) {
  const Ending end = end_of(str("env OMPI_COMM_WORLD_SIZE=3 '", KEDGE_FAILING_JOB, "' work"));
  EXPECT_EQ(end.exit_code, kExitUsage) << end.output;
  EXPECT_THAT(end.output, HasSubstr("the launcher started 3 ranks, but MPI connects 1: is it the launcher of another MPI?\n"));
}

TEST(Job, ARankThatIsKilledEndsAllRanks) {
  const Ending end = end_of_job("kill");
  EXPECT_THAT(end.exit_code, Not(AnyOf(0, 124))) << end.output;
  EXPECT_THAT(end.output, AllOf(HasSubstr("process rank 1"), HasSubstr("signal 9"))) << "the launcher names it";
}

TEST(Job, ARankThatIsKilledIsNamedByTheOthers) {
  for (const int rank : {0, 1, 2}) {
    const Ending end = end_of_job(str("kill ", rank));
    EXPECT_THAT(end.exit_code, Not(AnyOf(0, 124))) << end.output;
    for (const int other : others_than(rank))
      EXPECT_THAT(end.output, ContainsRegex(line_about(rank, other) + "was killed, crashed or ended without notice; the job ends\n"));
  }
}

TEST(Job, ARankThatHangsIsNamedByTheOthersAndEndsAllRanks) {
  for (const int rank : {0, 1, 2}) {
    const Ending end = end_of_job(str("stop ", rank), "KEDGE_WATCHDOG=3");
    EXPECT_EQ(end.exit_code, kExitWorld) << end.output;
    for (const int other : others_than(rank))
      EXPECT_THAT(end.output, ContainsRegex(line_about(rank, other) + "has not answered for 3 s: .*; the job ends\n"));
  }
}

TEST(Job, AJobThatIsSuspendedAsAWholeGoesOn) {
  const Ending end = end_of_job("suspend", "KEDGE_WATCHDOG=3");
  EXPECT_EQ(end.exit_code, 0) << end.output;
  EXPECT_THAT(end.output, Not(HasSubstr("has not answered")));
}

TEST(Job, WithoutAWatchdogItWorksToo) {
  const Ending end = end_of_job("work", "KEDGE_WATCHDOG=0");
  EXPECT_EQ(end.exit_code, 0) << end.output;
}

TEST(Job, AnErrorIsAlsoInTheLogOfTheOtherRanks) {
  const Ending end = end_of_job("throw");
  EXPECT_THAT(end.output, ContainsRegex(line_about(1, 0) + "ended: no room left on the disk; the job ends\n"));
}

// The servers' ranks: one that could not do its part would otherwise leave the others in a call for ever.
TEST(Job, ARankThatFailsInAnOrderWhereOthersWaitForItEndsAllRanks) {
  for (const char* how : {"order", "exchange"}) {
    const Ending end = end_of_job(how);
    EXPECT_EQ(end.exit_code, kExitWorld) << end.output;
    EXPECT_THAT(end.output, HasSubstr("error [rank 1] training failed: no memory left")) << how;
  }
}

TEST(Job, ARankThatExitsOnItsOwnEndsAllRanks) {
  const Ending end = end_of_job("exit");
  EXPECT_THAT(end.exit_code, Not(AnyOf(0, 124))) << end.output;
}

TEST(Job, ARankThatLeavesEarlyIsNamedByTheOthers) {
  const Ending end = end_of_job("leave");
  EXPECT_EQ(end.exit_code, kExitWorld) << end.output;
  EXPECT_THAT(end.output, HasSubstr("the ranks disagree: rank 0 calls all_reduce sum of fp32 [3], rank 1 calls the end of the job\n"));
}

}  // namespace
}  // namespace kedge
