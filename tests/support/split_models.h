#pragma once
// Models whose layers several ranks of the test compute together.
#include "kedge/model/model.h"

#include "tests/support/generation.h"
#include "tests/support/ranks.h"
#include "tests/support/tiny_models.h"

namespace kedge::testing {

// Heads that four ranks can split; of those whose key-value heads are fewer, ranks share them.
inline constexpr const char* kQwen3Split = R"({"model_type": "qwen3", "vocab_size": 31, "hidden_size": 20, "intermediate_size": 28,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 10, "max_position_embeddings": 64,
  "tie_word_embeddings": true})";
inline constexpr const char* kGpt2Split =
    R"({"model_type": "gpt2", "vocab_size": 31, "n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 64})";
inline constexpr const char* kSplitFamilies[] = {kTinyLlama, kTinyMistral, kTinyQwen2, kQwen3Split, kGpt2Split};

inline StorageOptions storage_of(int tensor_ranks, Sharding kind = Sharding::none, bool trainable = true) {
  StorageOptions storage{.device = mesh().device, .trainable = trainable};
  storage.tensor = mesh_of(tensor_ranks).tensor;
  storage.shards = {.kind = kind, .shard = mesh_of(tensor_ranks).data};
  return storage;
}

inline Tensor part_of(const Tensor& whole, const ParameterPart& part) {
  std::vector<Tensor> rows;
  for (const ParameterPart::Rows& range : part.rows) rows.push_back(whole.narrow(0, range.whole, range.count));
  const Tensor own = at::cat(rows);
  return own.dim() < 2 ? own : own.narrow(1, part.columns.begin, part.columns.end - part.columns.begin);
}

inline void add_lora(Model& model, double dropout = 0) {
  LoraConfig lora;
  lora.adapter_dim = 3;
  lora.adapter_dropout = dropout;
  lora.target_modules = {"all"};
  model.add_adapters(lora, true);
  model.adapters()->initialise(7);
  Parameters& parameters = model.adapters()->parameters();
  for (int i = 0; i < std::ssize(parameters.whole_specs()); ++i)
    parameters.write_rows(i, 0, normals(parameters.whole_specs()[static_cast<size_t>(i)].shape, 40 + static_cast<uint64_t>(i), 0.2));
  parameters.publish();
}

}  // namespace kedge::testing
