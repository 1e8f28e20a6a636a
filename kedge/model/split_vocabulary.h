#pragma once
// Log-probabilities where every rank has the logits of its own part of the vocabulary.
#include "kedge/core/tensor.h"
#include "kedge/dist/partition.h"
#include "kedge/dist/tensor_ranks.h"
#include "kedge/model/kernels/ops.h"

namespace kedge {

struct SplitVocabulary {
  Share ids;                           // whose logits this rank has
  const TensorRanks* ranks = nullptr;  // null: one rank has all
  int64_t most_ids = 0;                // of the rank that has the most: what all must choose alike is chosen by it

  [[nodiscard]] bool is_split() const { return ranks != nullptr; }
};

// Targets as columns of this rank's logits; -1 where another rank has them.
[[nodiscard]] Tensor own_targets(const Tensor& targets, const SplitVocabulary& vocabulary);

// As of logit_stats(), over all ranks' logits: the same bits on each, and a row's do not depend on other rows. Every rank calls it.
[[nodiscard]] LogitStats split_logit_stats(const Tensor& logits, const Tensor& targets, bool with_entropy, double temperature,
                                           const SplitVocabulary& vocabulary);

}  // namespace kedge
