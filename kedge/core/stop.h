#pragma once
// When to stop: signals, and the run's time limit. The loop checks at step boundaries, and code that waits for something that may
// never arrive checks while it waits; no work is interrupted.
#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kedge {

// While one lives, SIGTERM, SIGINT, SIGUSR1 and SIGHUP, unless that is ignored as by nohup, set a flag instead of ending the process; a
// second one ends it at once with 128 + its number. SIGPIPE is ignored meanwhile. At most one at a time; the old handlers are restored
// at the end.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal received first, if any: SIGTERM, SIGINT, SIGUSR1 or SIGHUP.
  [[nodiscard]] std::optional<int> received() const;
};

// What a process that stops for this signal exits with: 143 for SIGTERM, 138 for SIGUSR1, 130 for SIGINT.
[[nodiscard]] int exit_code_of(int signal);
[[nodiscard]] std::string name_of_signal(int signal);

// For code that waits: the signal received, if any. Called from any thread.
using StopQuestion = std::function<std::optional<int>()>;

// A signal was received while waiting for something that is unavailable. Not an Error: nothing has failed, so callers must not retry
// or continue without it. main exits with the signal's code.
class Interrupted : public std::runtime_error {
 public:
  Interrupted(int signal, const std::string& text) : std::runtime_error(text), signal_(signal) {}
  [[nodiscard]] int signal() const { return signal_; }

 private:
  int signal_;
};
// Throws Interrupted if a signal was received. An empty question means that none was. `what` is unavailable: "the reward
// server".
void check_stop(const StopQuestion& question, const std::string& what);
// How often waiting code checks: short enough that people do not notice.
inline constexpr std::chrono::milliseconds kStopPeriod{100};

// "DD:HH:MM:SS", all four fields integers; `where` opens the error.
[[nodiscard]] std::chrono::seconds parse_time_limit(std::string_view text, std::string_view where);

// Reports when a run's time is over. Without a limit it never is. Monotonic; starts when made.
class RunTimer {
 public:
  using Clock = std::chrono::steady_clock;
  RunTimer() = default;
  explicit RunTimer(std::chrono::seconds limit, Clock::time_point start = Clock::now()) : end_(start + limit) {}

  [[nodiscard]] bool is_over(Clock::time_point now = Clock::now()) const { return end_ && now >= *end_; }

 private:
  std::optional<Clock::time_point> end_;
};

}  // namespace kedge
