#include "kedge/train/checkpoint/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TempFolder;

int no_locks(int /*file*/, int /*operation*/) { return errno = ENOSYS, -1; }
// As on NFS without locks across machines: everybody gets it.
int everybodys(int /*file*/, int /*operation*/) { return 0; }

std::string held(const TempFolder& temp) {
  return str(temp.path().string(), ": another run is using this folder (process ", ::getpid(), " on ");
}

TEST(RunLock, IsHeldByOneRunAtATime) {
  const TempFolder temp;
  {
    const RunLock lock(temp.path());
    EXPECT_THAT(error_of([&] {
                  const RunLock second(temp.path());
                  return 0;
                }),
                HasSubstr(held(temp)));
    EXPECT_TRUE(is_run_held(temp.path()));
  }
  EXPECT_FALSE(is_run_held(temp.path()));
  EXPECT_FALSE(is_run_held(temp / "none"));
  EXPECT_NO_THROW(RunLock(temp.path()));
}

TEST(RunLock, WithoutLocksANoteThatChangesKeepsOthersOut) {
  const TempFolder temp;
  const LockSystem system{.flock = no_locks, .beat = 20ms};
  {
    const RunLock lock(temp.path(), system);
    EXPECT_TRUE(is_run_held(temp.path(), system));
    EXPECT_THAT(error_of([&] {
                  const RunLock second(temp.path(), {.flock = no_locks, .beat = 2s});
                  return 0;
                }),
                HasSubstr(held(temp)));
  }
  EXPECT_FALSE(is_run_held(temp.path(), system));
  EXPECT_NO_THROW(RunLock(temp.path(), system));
}

TEST(RunLock, ANoteThatDoesNotChangeWasLeftByARunThatWasKilled) {
  const TempFolder temp;
  temp.file(".lock", "boot-of-old there 17 3");
  EXPECT_NO_THROW(RunLock(temp.path(), {.flock = no_locks, .beat = 5ms}));
  temp.file(".lock", "boot-of-old there 17 3");
  EXPECT_NO_THROW(RunLock(temp.path(), {.beat = 5ms}));
}

TEST(RunLock, ARunOnAnotherMachineIsSeenWhereTheLockDoesNotReachIt) {
  const TempFolder temp;
  const LockSystem here{.flock = everybodys, .boot = "here", .beat = 20ms}, there{.flock = everybodys, .boot = "there", .beat = 2s};
  const RunLock lock(temp.path(), here);
  EXPECT_THAT(error_of([&] {
                const RunLock second(temp.path(), there);
                return 0;
              }),
              HasSubstr(held(temp)));
  EXPECT_TRUE(is_run_held(temp.path(), there));
}

TEST(RunLock, AFileThatCannotBeOpenedSaysWhy) {
  const TempFolder temp;
  EXPECT_EQ(error_of([&] {
              const RunLock lock(temp / "none");
              return 0;
            }),
            (temp / "none/.lock").string() + ": cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace kedge
