#pragma once
// The loss of a critic: the squared distance of values from returns, clipped around the old value.
#include "kedge/core/tensor.h"

namespace kedge {

// All [rows, time], fp32. Mean over the places where `mask` is not 0, times 0.5; `clip` at most 0: no limit. A scalar, differentiable in
// `values`; undefined where the mask is all 0.
struct ValueTargets {
  Tensor previous, returns, mask;
};
[[nodiscard]] Tensor value_loss(const Tensor& values, const ValueTargets& targets, double clip);

}  // namespace kedge
