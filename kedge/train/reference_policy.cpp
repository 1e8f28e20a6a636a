#include "kedge/train/reference_policy.h"

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"

namespace kedge {
namespace {

// Puts the policy's weights back, whatever happens.
class Swap {
 public:
  Swap(Parameters& parameters, const Tensor& reference, const Tensor& room)
      : parameters_(parameters), weights_(parameters.flat().detach()), room_(room) {
    if (room_.defined()) room_.copy_(weights_);
    weights_.copy_(reference);
  }
  ~Swap() { room_.defined() ? static_cast<void>(weights_.copy_(room_)) : parameters_.publish(); }
  Swap(const Swap&) = delete;
  Swap& operator=(const Swap&) = delete;

 private:
  Parameters& parameters_;
  Tensor weights_;
  Tensor room_;
};

Tensor host_like(const Tensor& tensor) {
  return at::empty(tensor.sizes(), at::TensorOptions().dtype(tensor.dtype()).pinned_memory(tensor.is_cuda()));
}

}  // namespace

ReferenceBytes reference_bytes(ReferenceKind kind, int64_t parameter_bytes, bool is_cuda) {
  if (kind == ReferenceKind::adapters_off) return {};
  if (kind == ReferenceKind::resident) return {parameter_bytes, 0};
  return is_cuda ? ReferenceBytes{0, 2 * parameter_bytes} : ReferenceBytes{2 * parameter_bytes, 0};
}

ReferencePolicy::ReferencePolicy(Model& policy, ReferenceKind kind) : policy_(policy), kind_(kind) {
  const NoGrad no_grad;
  const Tensor weights = policy.parameters().flat().detach();
  if (kind == ReferenceKind::adapters_off) {
    ensure(policy.adapters() != nullptr, "a reference without adapters of a policy that has none");
  } else if (kind == ReferenceKind::resident) {
    StorageOptions storage = policy.parameters().options();
    storage.trainable = false;
    copy_ = std::make_unique<Model>(policy.config(), policy.head(), storage);
    copy_->parameters().flat().copy_(weights);
  } else {
    ensure(policy.adapters() == nullptr, "a swapped reference of a policy with adapters, which would stay on");
    host_ = host_like(weights).copy_(weights);
    if (policy.parameters().flat_master().is_same(policy.parameters().flat())) saved_ = host_like(weights);
  }
}

void ReferencePolicy::with(const std::function<void(const Model& reference)>& use) {
  const NoGrad no_grad;
  if (kind_ == ReferenceKind::resident) return use(*copy_);
  if (kind_ == ReferenceKind::swapped) return with_swapped(use);
  const AdaptersOff off(policy_.adapters());
  use(policy_);
}

// Only the weights that the network computes with are swapped: masters and moments are not.
void ReferencePolicy::with_swapped(const std::function<void(const Model& reference)>& use) {
  const Swap swap(policy_.parameters(), host_, saved_);
  use(policy_);
}

}  // namespace kedge
