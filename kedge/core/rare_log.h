#pragma once
// Warnings that may occur thousands of times.
#include <atomic>
#include <bit>
#include <cstdint>

#include "kedge/core/log.h"

namespace kedge {

// Counts what happened and logs it: the first few times, then less and less often. Safe to use from several threads.
class RareLog {
 public:
  RareLog() = default;
  RareLog(RareLog&& other) noexcept : count_(other.count_.load()) {}

  template <typename... Parts>
  void note(const Parts&... parts) const {
    const auto number = static_cast<uint64_t>(count_.fetch_add(1)) + 1;
    if (number <= 8 || std::has_single_bit(number)) log_warn(parts..., "; ", number, " so far");
  }
  [[nodiscard]] int64_t count() const { return count_; }

 private:
  mutable std::atomic<int64_t> count_ = 0;
};

}  // namespace kedge
