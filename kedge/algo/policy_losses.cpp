#include "kedge/algo/policy_losses.h"

#include <ATen/ops/maximum.h>

namespace kedge {

Tensor mean_over(const Tensor& values, const Tensor& mask) {
  // Where nothing counts the sum is 0 times the values: a loss that backward can still go through.
  return (values * mask).sum() / mask.sum().clamp_min(1);
}

Tensor reinforce_loss(const Tensor& logprobs, const Tensor& advantages, const Tensor& mask) {
  return mean_over(-logprobs * advantages, mask);
}

ClippedTerms clipped_terms(const Tensor& logprobs, const Tensor& previous, const Tensor& advantages, double ratio_eps) {
  const Tensor ratio = (logprobs - previous).exp();
  const Tensor clamped = ratio.clamp(1 - ratio_eps, 1 + ratio_eps);
  return {at::maximum(-advantages * ratio, -advantages * clamped), ratio.detach(), clamped.detach()};
}

Tensor answer_loss(const Tensor& logprobs, const Tensor& mask) { return mean_over(-logprobs, mask); }

}  // namespace kedge
