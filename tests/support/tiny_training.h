#pragma once
// A tiny network over bytes with rows to train it on.
#include <memory>
#include <string>

#include "kedge/algo/supervised/supervised.h"
#include "kedge/text/tokenizer/byte_tokenizer.h"

#include "tests/support/temp_folder.h"
#include "tests/support/tiny_models.h"

namespace kedge::testing {

inline constexpr int64_t kByteVocabulary = 259;

inline constexpr const char* kByteLlama = R"({"model_type": "llama", "vocab_size": 259, "hidden_size": 16, "intermediate_size": 24,
  "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64})";

// Its weights take more memory than what a step of a few tokens computes.
inline constexpr const char* kWideByteLlama = R"({"model_type": "llama", "vocab_size": 259, "hidden_size": 128, "intermediate_size": 512,
  "num_hidden_layers": 4, "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64})";

inline std::unique_ptr<Model> byte_model(const HeadOptions& head = {}, const StorageOptions& storage = {.trainable = true}) {
  return tiny_model(kByteLlama, storage, head);
}

inline std::string sft_rows(int count) {
  std::string rows;
  for (int i = 0; i < count; ++i)
    rows += "{\"input\": \"" + std::string(static_cast<size_t>(i % 5 + 1), 'q') + "\", \"output\": \"answer " + std::to_string(i) + "\"}\n";
  return rows;
}

inline std::string pair_rows(int count) {
  std::string rows;
  for (int i = 0; i < count; ++i)
    rows += "{\"prompt\": \"q" + std::to_string(i) + " \", \"chosen\": \"good" + std::string(static_cast<size_t>(i % 3), '!') +
            "\", \"rejected\": \"bad\"}\n";
  return rows;
}

}  // namespace kedge::testing
