#pragma once
// A program that we started, with pipes to its standard input, output and error. It ends with this process, and leaves neither a zombie nor
// child processes behind. Independent of the protocol over the pipes.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kedge {

// Used from one thread, which must live as long as the program is needed: Linux kills it together with the thread that started it.
class ChildProcess {
 public:
  // The program is looked for as a shell would. It gets only the pipes as descriptors, and its own process group. One that
  // cannot be started is an Error.
  explicit ChildProcess(const std::vector<std::string>& argv);
  ~ChildProcess();  // kills it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Our ends of its pipes; reading and writing never wait.
  [[nodiscard]] int input() const { return input_; }  // -1 once closed
  [[nodiscard]] int output() const { return output_; }
  [[nodiscard]] int errors() const { return errors_; }
  [[nodiscard]] int pid() const { return pid_; }

  // Most programs that read lines end when there are no more.
  void close_input();

  // How it ended: "ended with exit code 3", "was killed by signal 9 (Killed)"; nothing while it runs. What it started is killed then.
  [[nodiscard]] const std::optional<std::string>& ended();
  void kill();

 private:
  void reap(int wait_options);

  int pid_ = -1;
  int input_ = -1, output_ = -1, errors_ = -1;
  std::optional<std::string> ended_;
};

// Appends what can be read from one of our ends now, until `into` is longer than `limit`. False at the end of the pipe.
bool read_available(int fd, std::string& into, size_t limit = std::string::npos);
// Moves the first complete line of `buffer` to `line`, without its line break. False if there is none.
[[nodiscard]] bool take_line(std::string& buffer, std::string& line);
// The last line that is not empty; empty if there is none.
[[nodiscard]] std::string last_line(std::string_view text);

}  // namespace kedge
