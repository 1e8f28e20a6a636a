#pragma once
// The losses of a policy, per token: free functions of log-probabilities. Every tensor is [tokens]. A loss is the sum of
// these terms with weights per token; a weight of 0 leaves its token out.
#include <optional>
#include <span>

#include "kedge/algo/online/advantage.h"
#include "kedge/core/tensor.h"

namespace kedge {

// The sum of weight * value over the tokens whose weight is not 0: only those are read, so that a NaN elsewhere does
// no harm. If all are 0: 0, with gradients of 0.
[[nodiscard]] Tensor weighted_sum(const Tensor& values, const Tensor& weights);

// REINFORCE: -logprob * advantage.
[[nodiscard]] Tensor reinforce_terms(const Tensor& logprobs, const Tensor& advantages);

// Of the tokens of each row, in rows of these lengths: their sum or mean, at every token of the row.
enum class RowReduce { mean, sum };
[[nodiscard]] Tensor over_rows(const Tensor& values, std::span<const int64_t> lengths, RowReduce reduce);

// PPO: the larger of -advantage * ratio with the ratio as it is and clipped to [1 - min, 1 + max]. With `c`, for a negative advantage, at
// most -advantage * c (dual clip).
struct ClipRange {
  double min = 0.2, max = 0.2;
  std::optional<double> c = {};
};
struct ClippedTerms {
  Tensor losses;
  Tensor ratio, clamped;  // of the policy to the one before; without gradients
  Tensor limited;         // is it the limit that decides the loss, so that the token's ratio has no gradient?
};
[[nodiscard]] ClippedTerms clipped_terms(const Tensor& ratio, const Tensor& advantages, const ClipRange& range);

// The same from log-probabilities, of every token for itself.
[[nodiscard]] ClippedTerms clipped_terms(const Tensor& logprobs, const Tensor& previous, const Tensor& advantages, double ratio_eps);

// CISPO: REINFORCE with the ratio, at most `max`, as a weight without gradients.
[[nodiscard]] ClippedTerms cispo_terms(const Tensor& ratio, const Tensor& logprobs, const Tensor& advantages, double max);

// The KL from the reference, per token, with gradients: as token_kl() has it.
[[nodiscard]] Tensor kl_terms(KlEstimator estimator, const Tensor& logprobs, const Tensor& reference);

// Rejection sampling: the chosen answers' cross-entropy.
[[nodiscard]] Tensor answer_terms(const Tensor& logprobs);

}  // namespace kedge
