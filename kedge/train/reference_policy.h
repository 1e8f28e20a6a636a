#pragma once
// The policy as it was at the start, frozen: what the KL penalty is measured from. A second copy of the weights on the device, a copy in
// host memory that takes the policy's place for a pass, or the network without its adapters. A critic keeps the reward model it started
// from in the same way.
#include <functional>
#include <memory>

#include "kedge/core/tensor.h"
#include "kedge/model/model.h"

namespace kedge {

enum class ReferenceKind { resident, swapped, adapters_off };

// What a reference of so many bytes costs at most where the policy computes, and in host memory; 0 where nothing is copied.
struct ReferenceBytes {
  int64_t device = 0, host = 0;
};
[[nodiscard]] ReferenceBytes reference_bytes(ReferenceKind kind, int64_t parameter_bytes, bool is_cuda);

// Not thread-safe. Takes the weights as they are when it is made: before a checkpoint is loaded. `policy` must outlive it.
class ReferencePolicy {
 public:
  ReferencePolicy(Model& policy, ReferenceKind kind);

  // Calls `use` with the reference. The policy is as it was when this returns, also by an exception; it must not be used meanwhile.
  void with(const std::function<void(const Model& reference)>& use);

 private:
  void with_swapped(const std::function<void(const Model& reference)>& use);

  Model& policy_;
  ReferenceKind kind_;
  std::unique_ptr<Model> copy_;  // resident
  Tensor host_;                  // swapped: the reference's weights
  Tensor saved_;                 // and room for the policy's; undefined where they can be made of its master weights
};

}  // namespace kedge
