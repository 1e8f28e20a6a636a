#pragma once
// The log-probability of a response given its prompt, of several rows in one pass. Independent of what it is used for.
#include <cstdint>
#include <span>
#include <vector>

#include "kedge/model/model.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

// A prompt and its response.
struct ResponseRow {
  TokenIds ids = {};
  int64_t num_prompt_tokens = 0;

  // Tokens of the response; the first token of a row is never predicted.
  [[nodiscard]] int64_t num_predicted() const;
};

// Sums over the responses' tokens, fp32 [rows] on the model's device; 0 for an empty response. At least one row.
[[nodiscard]] Tensor response_logprobs(const Model& model, std::span<const ResponseRow> rows, const PassOptions& pass = {});

// How many tokens the rows have that go through the network: all but the last of each.
[[nodiscard]] int64_t num_fed(std::span<const ResponseRow> rows);

}  // namespace kedge
