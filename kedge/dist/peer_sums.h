#pragma once
// Sums over the ranks of one machine in a single kernel, which reads the other ranks' GPU memory: what a decoding step adds up is small,
// and its time is that of waiting for each other. Stubs take its place in a build without CUDA.
#include <memory>

#include "kedge/core/tensor.h"
#include "kedge/dist/group.h"

namespace kedge {

// One per group and process. Calls are queued on the current stream, can be recorded in a CUDA graph, and come in the same order and of the
// same length on every rank.
class PeerSums {
 public:
  PeerSums() = default;
  virtual ~PeerSums() = default;
  PeerSums(const PeerSums&) = delete;
  PeerSums& operator=(const PeerSums&) = delete;

  // In place: what `count` ranks from `first` have, added in rank order in fp32. A row of bf16 or fp32. All ranks call it, those of other
  // sums too.
  virtual void sum_(const Tensor& row, int first, int count) = 0;

  // Is it the better way for this row, on the current stream? Ranks that share a GPU take turns on it, and a kernel that waits for another
  // rank uses up its own turn: there it is, only where it must be recorded. The same on all ranks.
  [[nodiscard]] virtual bool should_sum(const Tensor& row) const = 0;
};

// Null where it cannot be used: the ranks are on several machines, or are more than it has room for, or their GPUs cannot read each other's
// memory. A call of all ranks.
[[nodiscard]] std::shared_ptr<PeerSums> make_peer_sums(const Group& group, at::Device device);

}  // namespace kedge
