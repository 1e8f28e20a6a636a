#pragma once
// GPU memory of every rank of a group, mapped into all of them (CUDA IPC). The ranks are on one machine and may share a GPU. A build
// without CUDA has a stub.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kedge/core/tensor.h"
#include "kedge/dist/group.h"

namespace kedge {

// Made and destroyed by all ranks of the group, which is kept. A rank alone has no memory.
class PeerMemory {
 public:
  // Each rank gives `bytes`, zeroed. UsageError on all ranks if a GPU cannot read another's memory.
  PeerMemory(const Group& group, at::Device device, int64_t bytes);
  // A rank's memory is freed when no other has it mapped any more. While an exception is on its way the others cannot be waited for, and
  // the process is about to end.
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // A rank's memory, as this process sees it.
  [[nodiscard]] std::byte* operator[](int rank) const { return parts_[static_cast<size_t>(rank)]; }

 private:
  void release() const;

  const Group group_;
  const at::Device device_;
  std::vector<std::byte*> parts_;
};

}  // namespace kedge
