#pragma once
// Tiny networks of every family with weights off their ones and zeros, so that a mistake shows.
#include <memory>
#include <string>
#include <vector>

#include "kedge/core/autograd.h"
#include "kedge/model/model.h"

#include "tests/support/tensors.h"

namespace kedge::testing {

inline constexpr const char* kTinyLlama = R"({"model_type": "llama", "vocab_size": 31, "hidden_size": 24, "intermediate_size": 36,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64})";
inline constexpr const char* kTinyMistral = R"({"model_type": "mistral", "vocab_size": 31, "hidden_size": 24, "intermediate_size": 36,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "sliding_window": 3})";
inline constexpr const char* kTinyQwen3 = R"({"model_type": "qwen3", "vocab_size": 31, "hidden_size": 20, "intermediate_size": 28,
  "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 10, "max_position_embeddings": 64,
  "tie_word_embeddings": true})";
inline constexpr const char* kTinyGpt2 = R"({"model_type": "gpt2", "vocab_size": 31, "n_embd": 24, "n_layer": 2, "n_head": 3,
  "n_positions": 64})";

inline ModelConfig tiny_config(const char* json) { return parse_model_config(Json::parse(json), "config.json"); }

inline void scatter_weights(Parameters& parameters, uint64_t seed, double scale) {
  const NoGrad no_grad;
  for (size_t i = 0; i < parameters.specs().size(); ++i) {
    const Tensor& weights = parameters.master(static_cast<int>(i));
    weights.add_(normals(weights.sizes(), seed + i, scale).to(weights.device()));
  }
  parameters.publish();
}

inline std::unique_ptr<Model> tiny_model(const char* json, const StorageOptions& storage = {.trainable = true},
                                         const HeadOptions& head = {}) {
  StorageOptions alone = storage;
  alone.shards = {};
  alone.tensor = {};
  auto model = std::make_unique<Model>(tiny_config(json), head, alone);
  model->initialise(5);
  scatter_weights(model->parameters(), 100, 0.2);
  if (storage.shards.num_ranks() == 1 && !storage.tensor.is_split()) return model;
  auto shared = std::make_unique<Model>(tiny_config(json), head, storage);
  for (int i = 0; i < static_cast<int>(model->parameters().specs().size()); ++i)
    shared->parameters().write_rows(i, 0, model->parameters().master(i));
  shared->parameters().publish();
  return shared;
}

inline std::vector<std::vector<int32_t>> rows_of(const std::vector<int64_t>& lengths, int64_t vocab_size = 31) {
  std::vector<std::vector<int32_t>> rows;
  for (const int64_t length : lengths) {
    const Tensor ids = ids_below(vocab_size, length, 300 + rows.size());
    rows.emplace_back(ids.data_ptr<int64_t>(), ids.data_ptr<int64_t>() + length);
  }
  return rows;
}

inline PackedBatch batch_of(const std::vector<int64_t>& lengths, at::Device device = at::kCPU) {
  return pack_rows(rows_of(lengths), device);
}

// A loss in which every token counts differently.
inline Tensor token_loss(const Model& model, const PackedBatch& batch, const PassOptions& pass = {}) {
  const TokenLogprobs found = model_logprobs(model, batch, predicted_tokens(batch), {.entropy = true}, pass);
  const Tensor weights = normals({found.logprobs.size(0)}, 9).to(found.logprobs.device());
  return (found.logprobs * weights).sum() + 0.1 * found.entropy.sum();
}

// How far the rows' log-probabilities in one batch are from those of each row alone, at most.
inline double difference_to_rows_alone(const Model& model, const std::vector<std::vector<int32_t>>& rows) {
  const NoGrad no_grad;
  const auto logprobs = [&](std::span<const std::vector<int32_t>> some) {
    const PackedBatch batch = pack_rows(some, model.device());
    return model_logprobs(model, batch, predicted_tokens(batch)).logprobs;
  };
  const Tensor together = logprobs(rows);
  double worst = 0;
  int64_t start = 0;
  for (const auto& row : rows) {
    const Tensor alone = logprobs({&row, 1});
    if (alone.numel() > 0) worst = std::max(worst, largest_difference(alone, together.narrow(0, start, alone.numel())));
    start += alone.numel();
  }
  return worst;
}

}  // namespace kedge::testing
