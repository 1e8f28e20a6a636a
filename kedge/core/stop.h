#pragma once
// When to end: signals that ask for it, and the run's time limit. The loop asks at step boundaries, and who waits for something that may
// never come asks while it waits; no work is interrupted.
#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kedge {

// While one lives, SIGTERM, SIGINT, SIGUSR1 and SIGHUP, unless that is ignored as by nohup, set a flag instead of ending the process; a
// second one ends it at once with 128 + its number. At most one at a time; the old handlers come back at the end.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that came first, if any: SIGTERM, SIGINT, SIGUSR1 or SIGHUP.
  [[nodiscard]] std::optional<int> received() const;
};

// What a process that stops for this signal exits with: 143 for SIGTERM, 138 for SIGUSR1, 130 for SIGINT.
[[nodiscard]] int exit_code_of(int signal);
[[nodiscard]] std::string name_of_signal(int signal);

// For those who wait and know no signals' owner: the signal that came, if any. Called from any thread.
using StopQuestion = std::function<std::optional<int>()>;

// A signal came while something was waited for that is not there. Not an Error: what is waited for has not failed, so nobody may try again
// or go on without it. main exits with the signal's code.
class Interrupted : public std::runtime_error {
 public:
  Interrupted(int signal, const std::string& text) : std::runtime_error(text), signal_(signal) {}
  [[nodiscard]] int signal() const { return signal_; }

 private:
  int signal_;
};
// The Interrupted to throw where a signal came; else nothing. An empty question says that none did. `what` is not there: "the reward
// server".
void check_stop(const StopQuestion& question, const std::string& what);
// How often one asks who waits: a person does not notice.
inline constexpr std::chrono::milliseconds kStopPeriod{100};

// "DD:HH:MM:SS", all four fields whole numbers; `where` opens the error.
[[nodiscard]] std::chrono::seconds parse_time_limit(std::string_view text, std::string_view where);

// Says when a run's time is over. Without a limit it never is. Monotonic; starts when made.
class RunTimer {
 public:
  using Clock = std::chrono::steady_clock;
  RunTimer() = default;
  explicit RunTimer(std::chrono::seconds limit, Clock::time_point start = Clock::now()) : end_(start + limit) {}

  [[nodiscard]] bool is_over(Clock::time_point now = Clock::now()) const { return end_ && now >= *end_; }
  // Would work of this length, started now, end after the limit?
  [[nodiscard]] bool is_over_after(Clock::duration work, Clock::time_point now = Clock::now()) const { return is_over(now + work); }

 private:
  std::optional<Clock::time_point> end_;
};

}  // namespace kedge
