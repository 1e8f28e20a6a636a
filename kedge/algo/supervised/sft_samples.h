#pragma once
// Answers that the network gives to prompts of the validation data, next to the expected answers, for people to read.
#include <cstdint>
#include <memory>
#include <vector>

#include "kedge/metrics/metrics.h"
#include "kedge/model/model.h"
#include "kedge/text/tokenizer/text_encoder.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

struct SftSamplesOptions {
  int64_t num_samples = 2, max_tokens = 64;
};

// Memory of keys and values of this many tokens during sampling: doubled for the unused part of the last blocks.
[[nodiscard]] int64_t sample_cache_bytes(const ModelConfig& config, int64_t element_size, int64_t num_tokens);

// Not thread-safe. Model and tokenizer must outlive it; the model may be set later, before the first sample.
class SftSamples {
 public:
  SftSamples(const std::unique_ptr<Model>& model, const Tokenizer& tokenizer, const SftSamplesOptions& options);

  // The tokens before the first trained token are the prompt, the trained tokens after it the answer. A row without either is skipped.
  void add(const MaskedTokens& row);

  // Greedy decoding with the current weights. Its memory is released at the end.
  [[nodiscard]] std::vector<SampleTable> draw() const;

 private:
  struct Example {
    TokenIds prompt, wanted;
  };

  const std::unique_ptr<Model>& model_;
  const Tokenizer& tokenizer_;
  SftSamplesOptions options_;
  std::vector<Example> examples_;
};

}  // namespace kedge
