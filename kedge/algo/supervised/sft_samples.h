#pragma once
// Answers that the network gives to prompts of the validation data, beside the answers it should give: for people to look at.
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

// What keys and values of so many tokens take while samples are drawn: as much again for what is left of the last blocks.
[[nodiscard]] int64_t sample_cache_bytes(const ModelConfig& config, int64_t element_size, int64_t num_tokens);

// Not thread-safe. Model and tokenizer must outlive it; the model may come later, before the first draw.
class SftSamples {
 public:
  SftSamples(const std::unique_ptr<Model>& model, const Tokenizer& tokenizer, const SftSamplesOptions& options);

  // What stands before the first trained token is the prompt, the trained tokens behind it the answer. A row without either is passed over.
  void add(const MaskedTokens& row);

  // The likeliest token each time, with the weights as they are. The memory for it is given back at the end.
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
