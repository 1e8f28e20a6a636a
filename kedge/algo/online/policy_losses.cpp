#include "kedge/algo/online/policy_losses.h"

#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>

namespace kedge {

Tensor weighted_sum(const Tensor& values, const Tensor& weights) {
  return (at::where(weights != 0, values, at::zeros({1}, values.options())) * weights).sum();
}

Tensor reinforce_terms(const Tensor& logprobs, const Tensor& advantages) { return -logprobs * advantages; }

ClippedTerms clipped_terms(const Tensor& logprobs, const Tensor& previous, const Tensor& advantages, double ratio_eps) {
  const Tensor ratio = (logprobs - previous).exp();
  const Tensor clamped = ratio.clamp(1 - ratio_eps, 1 + ratio_eps);
  return {at::maximum(-advantages * ratio, -advantages * clamped), ratio.detach(), clamped.detach()};
}

Tensor answer_terms(const Tensor& logprobs) { return -logprobs; }

}  // namespace kedge
