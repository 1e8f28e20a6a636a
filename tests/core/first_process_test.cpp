#include "kedge/core/first_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "kedge/core/stop.h"

namespace kedge {
namespace {

using namespace std::chrono_literals;

// As the first process of a container is: those whose parents have ended become its children.
[[noreturn]] void run_first(const std::function<int()>& work) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::_Exit(run_as_first_process(work));
}

// The number of a process that has ended, and whose parent has too.
pid_t make_orphan() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return -1;
  const pid_t parent = ::fork();
  if (parent == 0) {
    const pid_t orphan = ::fork();
    if (orphan == 0) ::_exit(0);
    ::_exit(::write(ends[1], &orphan, sizeof orphan) == sizeof orphan ? 0 : 1);
  }
  pid_t orphan = -1;
  if (::read(ends[0], &orphan, sizeof orphan) != sizeof orphan) return -1;
  ::waitpid(parent, nullptr, 0);
  return orphan;
}

TEST(FirstProcess, EndsAsItsChildDoes) {
  EXPECT_EXIT(run_first([] { return 7; }), ::testing::ExitedWithCode(7), "");
  EXPECT_EXIT(run_first([] { return ::raise(SIGKILL); }), ::testing::ExitedWithCode(137), "");
}

TEST(FirstProcess, TakesInOrphans) {
  const auto work = [] {
    const pid_t orphan = make_orphan();
    while (::kill(orphan, 0) == 0) std::this_thread::sleep_for(1ms);  // there as long as nobody has taken it in
    return orphan > 0 ? 5 : 6;
  };
  EXPECT_EXIT(run_first(work), ::testing::ExitedWithCode(5), "");
}

TEST(FirstProcess, PassesSignalsOn) {
  const auto work = [] {
    const StopSignals stop;
    ::kill(::getppid(), SIGUSR1);
    while (!stop.received()) std::this_thread::sleep_for(1ms);
    return exit_code_of(*stop.received());
  };
  EXPECT_EXIT(run_first(work), ::testing::ExitedWithCode(138), "");
}

}  // namespace
}  // namespace kedge
