#pragma once
// How many rows and tokens a command has done and how fast, on standard error: on a terminal a status line, elsewhere an occasional line.
#include <chrono>
#include <cstdint>
#include <string>

namespace kedge::cli {

// Removes its status line when it goes.
class RowProgress {
 public:
  RowProgress() = default;
  ~RowProgress();
  RowProgress(const RowProgress&) = delete;
  RowProgress& operator=(const RowProgress&) = delete;

  // `seconds` is what the work itself took.
  void add(int64_t num_rows, int64_t num_tokens, double seconds);

  // "12 rows, 345 tokens, 6789 tokens/s"
  [[nodiscard]] std::string summary() const;

 private:
  using Clock = std::chrono::steady_clock;

  int64_t num_rows_ = 0, num_tokens_ = 0;
  double seconds_ = 0;
  Clock::time_point last_shown_{};
  Clock::time_point last_said_ = Clock::now();
};

}  // namespace kedge::cli
