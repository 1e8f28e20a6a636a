#pragma once
// The losses of a policy, per token: free functions of log-probabilities. Every tensor is fp32 [tokens]. A loss is the sum of
// these terms with weights per token; a weight of 0 leaves its token out.
#include "kedge/core/tensor.h"

namespace kedge {

// The sum of weight * value over the tokens whose weight is not 0: only those are read, so that a NaN elsewhere does
// no harm. If all are 0: 0, with gradients of 0.
[[nodiscard]] Tensor weighted_sum(const Tensor& values, const Tensor& weights);

// REINFORCE: -logprob * advantage.
[[nodiscard]] Tensor reinforce_terms(const Tensor& logprobs, const Tensor& advantages);

// PPO: the larger of -advantage * ratio with the ratio as it is and clipped to 1 +- ratio_eps.
struct ClippedTerms {
  Tensor losses;
  Tensor ratio, clamped;  // of the policy to the one before; without gradients
};
[[nodiscard]] ClippedTerms clipped_terms(const Tensor& logprobs, const Tensor& previous, const Tensor& advantages, double ratio_eps);

// Rejection sampling: the chosen answers' cross-entropy.
[[nodiscard]] Tensor answer_terms(const Tensor& logprobs);

}  // namespace kedge
