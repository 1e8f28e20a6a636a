#include "kedge/core/child_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <thread>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

// All of one pipe, up to its end.
std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
    ::poll(&readable, 1, -1);
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    if (size <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(size));
  }
}

std::string end_of(ChildProcess& child) {
  while (!child.ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return *child.ended();
}

bool is_alive(int pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return static_cast<bool>(stat >> number >> name >> state) && state != "Z";
}

TEST(ChildProcess, HasPipesToAllThreeStandardFiles) {
  ChildProcess child({"sh", "-c", "read line; echo got $line; echo oops >&2; exit 3"});
  ASSERT_EQ(::write(child.input(), "this\n", 5), 5);
  EXPECT_EQ(read_all(child.output()), "got this\n");
  EXPECT_EQ(read_all(child.errors()), "oops\n");
  EXPECT_EQ(end_of(child), "ended with exit code 3");
}

TEST(ChildProcess, OutputIsReadLineByLine) {
  ChildProcess child({"printf", "one\\r\\n\\ntw"});
  static_cast<void>(end_of(child));
  std::string output, line;
  EXPECT_FALSE(read_available(child.output(), output));
  EXPECT_TRUE(take_line(output, line));
  EXPECT_EQ(line, "one");
  EXPECT_TRUE(take_line(output, line));
  EXPECT_EQ(line, "");
  EXPECT_FALSE(take_line(output, line));
  EXPECT_EQ(output, "tw");
}

TEST(ChildProcess, TheLastLineIsOneWithText) {
  EXPECT_EQ(last_line("one\ntwo\n\n"), "two");
  EXPECT_EQ(last_line("one"), "one");
  EXPECT_EQ(last_line("\n"), "");
  EXPECT_EQ(last_line(""), "");
}

TEST(ChildProcess, SeesTheEndOfItsInput) {
  ChildProcess child({"cat"});
  child.close_input();
  EXPECT_EQ(child.input(), -1);
  EXPECT_EQ(end_of(child), "ended with exit code 0");
}

TEST(ChildProcess, AProgramThatIsNotThereIsAnError) {
  EXPECT_EQ(testing::error_of<Error>([] {
              ChildProcess child({"/no/such/program", "x"});
              return 0;
            }),
            "cannot start /no/such/program: No such file or directory");
}

TEST(ChildProcess, InheritsNothingElse) {
  const int leaked = ::dup(STDOUT_FILENO);  // opened without the flag that closes it
  ChildProcess child({"sh", "-c", "ls /proc/self/fd | wc -l; grep SigBlk /proc/self/status"});
  // The three standard files, and the one that ls itself has open for the folder.
  EXPECT_EQ(read_all(child.output()), "4\nSigBlk:\t0000000000000000\n");
  ::close(leaked);
}

TEST(ChildProcess, IsKilledWithAllItStarted) {
  const testing::TempFolder folder;
  int shell = 0, grandchild = 0;
  {
    ChildProcess child({"sh", "-c", "sleep 1000 & echo $!; wait"});
    std::string line;
    for (char c = 0; c != '\n';)
      if (::read(child.output(), &c, 1) == 1) line += c;
    grandchild = std::stoi(line);
    shell = child.pid();
    EXPECT_TRUE(is_alive(shell));
    EXPECT_TRUE(is_alive(grandchild));
  }
  EXPECT_EQ(::kill(shell, 0), -1);  // not even a zombie
  while (is_alive(grandchild)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(ChildProcess, SaysWhichSignalEndedIt) {
  ChildProcess child({"sh", "-c", "kill -SEGV $$"});
  EXPECT_EQ(end_of(child), "was killed by signal 11 (Segmentation fault)");
}

TEST(ChildProcess, EndsWithTheThreadThatStartedIt) {
  int pid = 0;
  // The object outlives its thread, as it does where a whole process is killed and no destructor runs.
  std::unique_ptr<ChildProcess> child;
  std::thread([&] {
    child = std::make_unique<ChildProcess>(std::vector<std::string>{"sleep", "1000"});
    pid = child->pid();
  }).join();
  EXPECT_EQ(end_of(*child), "was killed by signal 9 (Killed)");
  EXPECT_FALSE(is_alive(pid));
}

}  // namespace
}  // namespace kedge
