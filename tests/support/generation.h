#pragma once
// Greedy text by a plain loop over whole forward passes, and the engine's beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "kedge/engine/engine.h"

#include "tests/support/model_logits.h"
#include "tests/support/tiny_models.h"

namespace kedge::testing {

inline constexpr const char* kTinyQwen2 = R"({"model_type": "qwen2", "vocab_size": 31, "hidden_size": 24, "intermediate_size": 36,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 64})";
inline constexpr const char* kFamilies[] = {kTinyLlama, kTinyMistral, kTinyQwen2, kTinyQwen3, kTinyGpt2};

// A tiny model with a context of 256 tokens.
inline std::unique_ptr<Model> long_model(std::string json, const StorageOptions& storage) {
  json.replace(json.rfind("64}") == std::string::npos ? json.find("\": 64") + 3 : json.rfind("64}"), 2, "256");
  return tiny_model(json.c_str(), storage);
}

inline std::vector<std::vector<int32_t>> prompts_of(const std::vector<int64_t>& lengths) { return rows_of(lengths); }

inline GenerateRequest greedy_request(std::vector<int32_t> prompt, int64_t max_new) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_new = max_new;
  request.sampling.use_greedy = true;
  return request;
}

// By a loop of whole passes.
inline std::vector<int32_t> plain_greedy(const Model& model, std::vector<int32_t> row, int64_t max_new) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < max_new; ++i) {
    const Tensor logits = model_logits(model, pack_rows({&row, 1}, model.device()));
    tokens.push_back(static_cast<int32_t>(logits.select(0, -1).argmax().item<int64_t>()));
    row.push_back(tokens.back());
  }
  return tokens;
}

// How far a greedy response's log-probabilities are from the model's, at most. The response must be what a loop of whole passes over all
// tokens so far writes; one pass over the whole row shows it, since a token's logits do not depend on those behind it.
inline double expect_plain(const Model& model, const std::vector<int32_t>& prompt, const Completion& found) {
  std::vector<int32_t> row = prompt;
  row.insert(row.end(), found.tokens.begin(), found.tokens.end());
  const NoGrad no_grad;
  const PackedBatch batch = pack_rows({&row, 1}, model.device());
  const auto first = static_cast<int64_t>(prompt.size()) - 1, count = static_cast<int64_t>(found.tokens.size());
  const Tensor wanted = model_logits(model, batch).narrow(0, first, count).argmax(-1).cpu();
  const Tensor logprobs = model_logprobs(model, batch, predicted_tokens(batch)).logprobs.narrow(0, first, count).cpu();
  double worst = 0;
  for (size_t j = 0; j < found.tokens.size(); ++j) {
    const auto at = static_cast<int64_t>(j);
    EXPECT_EQ(found.tokens[j], wanted[at].item<int64_t>()) << "token " << j << " after a prompt of " << prompt.size();
    worst = std::max(worst, std::abs(logprobs[at].item<double>() - found.logprobs[j]));
  }
  return worst;
}

// The engine's text of all prompts at once, token for token, and its log-probabilities: on the CPU bit for bit, else within 1e-4.
inline EngineStats expect_greedy(const Model& model, const std::vector<std::vector<int32_t>>& prompts, int64_t max_new,
                                 EngineConfig config) {
  if (config.memory == EngineConfig{}.memory) config.memory = "64MiB";
  Engine engine(model, config);
  std::vector<GenerateRequest> requests;
  for (const auto& prompt : prompts) requests.push_back(greedy_request(prompt, max_new));
  const auto found = engine.generate(std::move(requests));
  double worst = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(static_cast<int64_t>(found[i][0].tokens.size()), max_new);
    worst = std::max(worst, expect_plain(model, prompts[i], found[i][0]));
  }
  if (model.device().is_cpu()) {
    EXPECT_EQ(worst, 0);
  } else {
    EXPECT_LT(worst, 1e-4);
    std::cout << "largest difference between the engine's and the model's log-probabilities: " << worst << "\n";
  }
  return engine.stats();
}

}  // namespace kedge::testing
