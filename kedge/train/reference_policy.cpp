#include "kedge/train/reference_policy.h"

#include <exception>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"

namespace kedge {
namespace {

// Puts the policy's weights back, whatever happens.
class Swap {
 public:
  Swap(Parameters& parameters, const Tensor& reference, const Tensor& room)
      : parameters_(parameters), weights_(parameters.stored_values().detach()), room_(room) {
    if (room_.defined()) room_.copy_(weights_);
    weights_.copy_(reference);
    if (parameters_.cuts_weights()) parameters_.share_values();
  }
  ~Swap() noexcept(false) {
    if (std::uncaught_exceptions() > 0 && parameters_.options().shards.num_ranks() > 1) return;  // the other ranks may not be there
    if (!room_.defined()) {
      parameters_.publish();
      return;
    }
    weights_.copy_(room_);
    if (parameters_.cuts_weights()) parameters_.share_values();
  }
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
  const Tensor weights = policy.parameters().stored_values().detach();
  if (kind == ReferenceKind::adapters_off) {
    ensure(policy.adapters() != nullptr, "a reference without adapters of a policy that has none");
  } else if (kind == ReferenceKind::resident) {
    StorageOptions storage = policy.parameters().options();
    storage.trainable = false;
    copy_ = std::make_unique<Model>(policy.config(), policy.head(), storage);
    copy_->parameters().stored_values().copy_(weights);
    if (policy.parameters().cuts_weights()) copy_->parameters().share_values();
  } else {
    ensure(policy.adapters() == nullptr, "a swapped reference of a policy with adapters, which would stay on");
    host_ = host_like(weights).copy_(weights);
    if (policy.parameters().options().dtype == at::kFloat) saved_ = host_like(weights);  // there are no other masters
  }
}

void ReferencePolicy::with(const std::function<void(const Model& reference)>& use) {
  const NoGrad no_grad;
  if (kind_ == ReferenceKind::swapped) return with_swapped(use);
  const AdaptersOff off(kind_ == ReferenceKind::adapters_off ? policy_.adapters() : nullptr);
  const Model& reference = kind_ == ReferenceKind::resident ? *copy_ : policy_;
  const WholeWeights whole(reference.parameters());
  use(reference);
}

// Only the weights that the network computes with are swapped: masters and moments are not.
void ReferencePolicy::with_swapped(const std::function<void(const Model& reference)>& use) {
  const Swap swap(policy_.parameters(), host_, saved_);
  const WholeWeights whole(policy_.parameters());
  use(policy_);
}

}  // namespace kedge
