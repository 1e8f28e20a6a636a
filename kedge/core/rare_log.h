#pragma once
// Warnings that may occur thousands of times.
#include <atomic>
#include <bit>
#include <cstdint>
#include <mutex>
#include <set>
#include <utility>

#include "kedge/core/log.h"

namespace kedge {

// Counts what happened and logs it: the first few times, then less and less often. Safe to use from several threads.
class RareLog {
 public:
  RareLog() = default;
  RareLog(RareLog&& other) noexcept : count_(other.count_.load()), noted_(std::move(other.noted_)) {}

  template <typename... Parts>
  void note(const Parts&... parts) const {
    const auto number = static_cast<uint64_t>(count_.fetch_add(1)) + 1;
    if (number <= 8 || std::has_single_bit(number)) log_warn(parts..., "; ", number, " so far");
  }
  // The same, once for every number: a row that is looked at again is no other row.
  template <typename... Parts>
  void note_once(int64_t number, const Parts&... parts) const {
    {
      const std::lock_guard lock(mutex_);
      if (!noted_.insert(number).second) return;
    }
    note(parts...);
  }
  [[nodiscard]] int64_t count() const { return count_; }

 private:
  mutable std::atomic<int64_t> count_ = 0;
  mutable std::mutex mutex_;
  mutable std::set<int64_t> noted_;  // of note_once
};

}  // namespace kedge
