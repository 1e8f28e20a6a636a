#pragma once
// Sizes of new models, by name, as the config.json of a Hugging Face folder. Independent of weights.
#include <span>
#include <string>
#include <string_view>

#include "kedge/model/spec/model_config.h"

namespace kedge {

struct ModelShape {
  Family family = Family::llama;
  int64_t hidden_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;  // ignored for GPT-2, which has as many as heads
  int64_t head_dim = 0;      // 0: hidden_size / num_heads, which is GPT-2's always
  int64_t mlp_size = 0;
  int64_t vocab_size = 0;
  int64_t max_positions = 0;
  bool tied = false;
  double rope_theta = 10000;
  double norm_eps = 1e-6;
};

struct NamedShape {
  std::string_view name, other_name;  // other_name may be empty
  std::string_view about;
  ModelShape shape;
};
[[nodiscard]] std::span<const NamedShape> named_shapes();

// An unknown name is a UsageError that opens with `where` and lists the known ones.
[[nodiscard]] ModelShape find_shape(std::string_view name, std::string_view where);

// The config.json of a language model of this shape: transformers loads it. No special tokens are named. Inconsistent sizes
// are UsageErrors, here or when it is parsed.
[[nodiscard]] Json shape_json(const ModelShape& shape);

// The model of that name.
[[nodiscard]] ModelConfig shape_config(std::string_view name);

}  // namespace kedge
