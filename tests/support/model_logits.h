#pragma once
// All logits of a batch at once, which the library never needs.
#include "kedge/core/autograd.h"
#include "kedge/model/logprob_head.h"
#include "kedge/model/model.h"

namespace kedge::testing {

// fp32 [tokens, vocab].
inline Tensor model_logits(const Model& model, const PackedBatch& batch) {
  const NoGrad no_grad;
  return logits_of(model.hidden(batch), model.language_head().weight).to(at::kFloat);
}

}  // namespace kedge::testing
