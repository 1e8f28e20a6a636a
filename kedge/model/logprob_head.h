#pragma once
// Log-probabilities and entropies of tokens from hidden states, differentiable. The logits of [tokens, vocab] exist for a few hundred
// places at a time; beyond a memory budget they are not kept for the backward, which recomputes them with the same bits.
#include "kedge/core/tensor.h"
#include "kedge/model/kernels/packed_batch.h"
#include "kedge/model/split_vocabulary.h"

namespace kedge {

struct HeadView {
  Tensor weight;                    // [vocab, hidden], or this rank's rows of it
  Tensor weight_gradient;           // fp32, or undefined
  SplitVocabulary vocabulary = {};  // those rows
  int64_t kept_logits = 0;          // bytes that are kept for the backward, if that is more than LogitMemory says
};

// Logits of hidden states [rows, hidden]: fp32 if the device supports that, else in the weight's type.
[[nodiscard]] Tensor logits_of(const Tensor& hidden, const Tensor& weight);

// Limits of the logits in memory: places at a time, and bytes kept between forward and backward.
struct LogitMemory {
  int64_t chunk = 0, waiting_bytes = 0;
};
[[nodiscard]] LogitMemory logit_memory(bool is_cuda, int64_t vocab_size);

struct LogprobOptions {
  bool entropy = false;
  int64_t chunk = 0;       // places at a time; 0 = what suits the device
  double temperature = 1;  // divides the logits
};

struct TokenLogprobs {
  Tensor logprobs;  // fp32 [predicted]
  Tensor entropy;   // fp32 [predicted], nats; undefined unless requested
};

// `hidden` [tokens, hidden].
[[nodiscard]] TokenLogprobs token_logprobs(const Tensor& hidden, const HeadView& head, const PredictedTokens& predicted,
                                           const LogprobOptions& options = {});

}  // namespace kedge
