#include "kedge/core/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

// Both ends close on destruction, and when another program is started.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(str("cannot make a pipe: ", std::strerror(errno)));
    read = above_standard(ends[0]);
    write = above_standard(ends[1]);
  }
  ~Pipe() { close_fd(read), close_fd(write); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  // Where we ourselves were started without standard input or output, a pipe could get their numbers.
  static int above_standard(int fd) {
    if (fd > STDERR_FILENO) return fd;
    const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ::close(fd);
    return moved;
  }

  int read = -1, write = -1;
};

int take_end(int& fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  return std::exchange(fd, -1);
}

// Between fork and exec: nothing that could wait for another thread's lock. Does not return.
[[noreturn]] void run_child(char* const* argv, const Pipe& in, const Pipe& out, const Pipe& err, int report, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it ended before the line above
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(in.read, STDIN_FILENO);
  ::dup2(out.write, STDOUT_FILENO);
  ::dup2(err.write, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);  // also what others opened without the flag
  ::execvp(argv[0], argv);
  const int problem = errno;
  if (::write(report, &problem, sizeof problem) < 0) ::_exit(126);
  ::_exit(127);
}

std::string how_it_ended(int status) {
  if (WIFEXITED(status)) return str("ended with exit code ", WEXITSTATUS(status));
  const char* name = ::sigdescr_np(WTERMSIG(status));
  return str("was killed by signal ", WTERMSIG(status), " (", name == nullptr ? "unknown" : name, ")");
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& argv) {
  ensure(!argv.empty(), "a program without a name");
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  Pipe in, out, err, report;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw Error(str("cannot start ", argv[0], ": ", std::strerror(errno)));
  if (pid == 0) run_child(pointers.data(), in, out, err, report.write, parent);
  pid_ = pid;
  close_fd(report.write);
  int problem = 0;
  ssize_t size = 0;
  do size = ::read(report.read, &problem, sizeof problem);  // ends when the program runs
  while (size < 0 && errno == EINTR);
  if (size > 0) {
    reap(0);
    throw Error(str("cannot start ", argv[0], ": ", std::strerror(problem)));
  }
  input_ = take_end(in.write);
  output_ = take_end(out.read);
  errors_ = take_end(err.read);
}

ChildProcess::~ChildProcess() {
  kill();
  close_fd(input_), close_fd(output_), close_fd(errors_);
}

void ChildProcess::close_input() { close_fd(input_); }

const std::optional<std::string>& ChildProcess::ended() {
  if (!ended_) reap(WNOHANG);
  return ended_;
}

void ChildProcess::kill() {
  if (ended_) return;
  ::kill(-pid_, SIGKILL);
  reap(0);
}

void ChildProcess::reap(int wait_options) {
  siginfo_t info{};  // looked at first, because its group is surely its own only until it is reaped
  int result = 0;
  do result = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | wait_options);
  while (result != 0 && errno == EINTR);
  if (result == 0 && info.si_pid == 0) return;
  int status = 0;
  if (result == 0) {
    ::kill(-pid_, SIGKILL);
    result = ::waitpid(pid_, &status, 0);
  }
  ended_ = result < 0 ? "ended" : how_it_ended(status);
}

bool read_available(int fd, std::string& into, size_t limit) {
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    if (size > 0) into.append(buffer.data(), static_cast<size_t>(size));
    if (size == 0) return false;
    if (size < 0 && errno != EINTR) return errno == EAGAIN;
    if (into.size() > limit) return true;
  }
}

bool take_line(std::string& buffer, std::string& line) {
  const size_t end = buffer.find('\n');
  if (end == std::string::npos) return false;
  line = buffer.substr(0, end);
  if (line.ends_with('\r')) line.pop_back();
  buffer.erase(0, end + 1);
  return true;
}

std::string last_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of('\n') + 1);  // npos + 1 is 0
  return std::string(text.substr(text.rfind('\n') + 1));
}

}  // namespace kedge
