#pragma once
// The initial policy, frozen: the reference of the KL penalty. A second copy of the weights on the device, a copy in
// host memory that is swapped in for a pass, or the network without its adapters. A critic keeps the reward model it started
// from in the same way.
#include <functional>
#include <memory>

#include "kedge/core/tensor.h"
#include "kedge/model/model.h"

namespace kedge {

enum class ReferenceKind { resident, swapped, adapters_off };

// The maximum memory of a reference of this many bytes, on the policy's device and on the host; 0 if nothing is copied.
struct ReferenceBytes {
  int64_t device = 0, host = 0;
};
[[nodiscard]] ReferenceBytes reference_bytes(ReferenceKind kind, int64_t parameter_bytes, bool is_cuda);

// Not thread-safe. Takes the weights at construction: before a checkpoint is loaded. `policy` must outlive it.
class ReferencePolicy {
 public:
  ReferencePolicy(Model& policy, ReferenceKind kind);

  // Calls `use` with the reference. The policy is restored when this returns, also by an exception; it must not be used meanwhile.
  void with(const std::function<void(const Model& reference)>& use);

 private:
  void with_swapped(const std::function<void(const Model& reference)>& use);

  Model& policy_;
  ReferenceKind kind_;
  std::unique_ptr<Model> copy_;  // resident
  Tensor host_;                  // swapped: the reference's weights
  Tensor saved_;                 // and a buffer for the policy's; undefined if they can be restored from its master weights
};

}  // namespace kedge
