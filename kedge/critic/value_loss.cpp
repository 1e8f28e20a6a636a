#include "kedge/critic/value_loss.h"

#include <ATen/ops/clamp.h>
#include <ATen/ops/maximum.h>

namespace kedge {

Tensor value_loss(const Tensor& values, const ValueTargets& targets, double clip) {
  const Tensor counts = targets.mask.ne(0);
  if (!counts.any().item<bool>()) return {};
  Tensor distance = (values - targets.returns).square();
  if (clip > 0) {
    const Tensor limited = targets.previous + at::clamp(values - targets.previous, -clip, clip);
    distance = at::maximum(distance, (limited - targets.returns).square());
  }
  return 0.5 * distance.masked_select(counts).mean();
}

}  // namespace kedge
