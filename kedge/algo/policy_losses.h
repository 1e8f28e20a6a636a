#pragma once
// What a policy is trained by, over the tokens of a micro-batch: free functions of log-probabilities. Every tensor is fp32 [tokens]; `mask`
// is 1 on tokens that count and 0 on others. Losses are scalars, means over the tokens that count; where none does, 0 with gradients of 0.
#include "kedge/core/tensor.h"

namespace kedge {

// The mean of `values` over the tokens that count; 0 where none does.
[[nodiscard]] Tensor mean_over(const Tensor& values, const Tensor& mask);

// REINFORCE: -logprob * advantage.
[[nodiscard]] Tensor reinforce_loss(const Tensor& logprobs, const Tensor& advantages, const Tensor& mask);

// PPO: the worse of -advantage * ratio with the ratio as it is and held within 1 +- ratio_eps.
struct ClippedTerms {
  Tensor losses;          // [tokens]
  Tensor ratio, clamped;  // of the policy to the one before, [tokens]; without gradients
};
[[nodiscard]] ClippedTerms clipped_terms(const Tensor& logprobs, const Tensor& previous, const Tensor& advantages, double ratio_eps);

// Rejection sampling: the chosen answers' cross-entropy.
[[nodiscard]] Tensor answer_loss(const Tensor& logprobs, const Tensor& mask);

}  // namespace kedge
