#pragma once
// The largest piece of memory that a tensor on the CPU takes while this exists.
#include <atomic>
#include <cstddef>

#include <c10/core/CPUAllocator.h>

namespace kedge::testing {

class LargestAllocation final : public c10::Allocator {
 public:
  LargestAllocation() { c10::SetCPUAllocator(this); }
  ~LargestAllocation() override { c10::SetCPUAllocator(usual_); }
  LargestAllocation(const LargestAllocation&) = delete;
  LargestAllocation& operator=(const LargestAllocation&) = delete;

  [[nodiscard]] size_t bytes() const { return largest_; }

  c10::DataPtr allocate(size_t bytes) override {
    for (size_t before = largest_; before < bytes && !largest_.compare_exchange_weak(before, bytes);) {
    }
    return usual_->allocate(bytes);
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return usual_->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

 private:
  c10::Allocator* usual_ = c10::GetCPUAllocator();
  std::atomic<size_t> largest_ = 0;  // critics train in a thread of their own
};

}  // namespace kedge::testing
