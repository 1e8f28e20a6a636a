#pragma once
// The next token from a row of logits: NeMo-Aligner's rules in their order, in fp32, sampled with a counter-based generator. Independent of
// models and text.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/core/random.h"

namespace kedge {

struct SamplingConfig {
  bool use_greedy = false;
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 1;
  double repetition_penalty = 1;

  void fields(auto&& field) {
    field("use_greedy", use_greedy, "always pick the most likely token");
    field("temperature", temperature, "divides the logits", above(0));
    field("top_k", top_k, "sample from the k most likely tokens (including ties with the k-th); 0: from all", at_least(0));
    field("top_p", top_p, "sample from the smallest set of most likely tokens whose total probability exceeds this; 0 or 1: from all",
          at_least(0), at_most(1));
    field("repetition_penalty", repetition_penalty, "divides the logits of tokens already used", above(0));
  }
};

// What a draw depends on besides the logits.
struct SamplingRow {
  std::span<const int32_t> used = {};     // prompt and response so far, for the penalty
  std::span<const int32_t> not_yet = {};  // ids that may not be sampled: end tokens before the minimum length
  int64_t vocab_size = 0;                 // ids from here on are padding; 0: none
  double uniform = 0;                     // in [0, 1)
  double logprob_temperature = 1;         // of the log-prob that is reported; it does not affect the draw
};

struct Drawn {
  int32_t token = 0;
  float logprob = 0;  // under softmax of all raw logits, divided by `logprob_temperature`
};

// Buffers that the next draw reuses.
struct SamplingScratch {
  std::vector<float> logits;    // as the rules changed them
  std::vector<float> sums;      // of exponentials, up to the end of every block of tokens
  std::vector<float> order;     // logits, partly sorted
  std::vector<int32_t> likely;  // ids, the most likely first
  std::vector<bool> is_used;    // false everywhere between draws
};

// Nothing if the logits are not finite or no token is allowed. The log-prob has the bits that model/ops gives the same logits on the
// CPU.
[[nodiscard]] std::optional<Drawn> draw_token(std::span<const float> logits, const SamplingConfig& config, const SamplingRow& row,
                                              SamplingScratch& scratch);

// The random numbers of a sample: a function of these values only.
struct SampleKey {
  uint64_t seed = 0;
  uint64_t purpose = 0, round = 0, prompt = 0, sample = 0;

  // For the draw at a position of the response.
  [[nodiscard]] double uniform(int64_t position) const {
    return Random(seed, Random::stream_of({purpose, round, prompt, sample})).uniform(static_cast<uint64_t>(position));
  }
};

}  // namespace kedge
