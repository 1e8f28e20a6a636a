#include "kedge/algo/online/policy_losses.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/where.h>

#include "kedge/core/error.h"

namespace kedge {

Tensor weighted_sum(const Tensor& values, const Tensor& weights) {
  return (at::where(weights != 0, values, at::zeros({1}, values.options())) * weights).sum();
}

Tensor reinforce_terms(const Tensor& logprobs, const Tensor& advantages) { return -logprobs * advantages; }

Tensor over_rows(const Tensor& values, std::span<const int64_t> lengths, RowReduce reduce) {
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (const int64_t length : lengths) {
    const Tensor row = values.narrow(0, begin, length);
    if (length > 0) parts.push_back((reduce == RowReduce::mean ? row.mean() : row.sum()).expand({length}));
    begin += length;
  }
  ensure(begin == values.numel(), "rows of ", begin, " tokens, but there are ", values.numel());
  return parts.empty() ? values : at::cat(parts);
}

ClippedTerms clipped_terms(const Tensor& ratio, const Tensor& advantages, const ClipRange& range) {
  const Tensor clamped = ratio.clamp(1 - range.min, 1 + range.max);
  const Tensor free = -advantages * ratio, limited = -advantages * clamped;
  Tensor losses = at::maximum(free, limited);
  if (range.c) losses = at::where(advantages < 0, at::minimum(losses, -advantages * *range.c), losses);
  return {losses, ratio.detach(), clamped.detach(), limited.detach().gt(free.detach())};
}

ClippedTerms clipped_terms(const Tensor& logprobs, const Tensor& previous, const Tensor& advantages, double ratio_eps) {
  return clipped_terms((logprobs - previous).exp(), advantages, {ratio_eps, ratio_eps});
}

ClippedTerms cispo_terms(const Tensor& ratio, const Tensor& logprobs, const Tensor& advantages, double max) {
  const Tensor weight = ratio.detach().clamp_max(max);
  return {-weight * advantages * logprobs, ratio.detach(), weight, ratio.detach().gt(weight)};
}

Tensor kl_terms(KlEstimator estimator, const Tensor& logprobs, const Tensor& reference) {
  const Tensor difference = logprobs - reference;
  switch (estimator) {
    case KlEstimator::abs:
      return difference.abs();
    case KlEstimator::k1:
      return difference;
    case KlEstimator::k2:
      return difference * difference / 2;
    case KlEstimator::k3:
      return (-difference).exp() - 1 + difference;
  }
  throw Bug("no such estimator");
}

Tensor answer_terms(const Tensor& logprobs) { return -logprobs; }

}  // namespace kedge
