#pragma once
// A limit on the bytes held at the same time.
#include <atomic>
#include <cstdint>

namespace kedge {

// Thread-safe.
class ByteBudget {
 public:
  explicit ByteBudget(int64_t total) : left_(total) {}

  // False: not enough are left, and none were taken.
  [[nodiscard]] bool take(int64_t bytes) {
    int64_t left = left_;
    while (left >= bytes)
      if (left_.compare_exchange_weak(left, left - bytes)) return true;
    return false;
  }
  void give_back(int64_t bytes) { left_ += bytes; }
  [[nodiscard]] int64_t left() const { return left_; }

 private:
  std::atomic<int64_t> left_;
};

}  // namespace kedge
