#pragma once
// The shape of a model, from its config.json: one description for every family, so that one decoder runs them all.
// Independent of tensors and weights.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/model/spec/rope_scaling.h"

namespace kedge {

enum class Family { llama, mistral, qwen2, qwen3, gpt2 };
enum class NormKind { rms, layer };
enum class Activation { silu, gelu, gelu_tanh, relu, relu2 };

struct ModelConfig {
  Family family = Family::llama;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t mlp_size = 0;
  int64_t max_positions = 0;  // the context: tokens of a sequence
  NormKind norm = NormKind::rms;
  double norm_eps = 1e-6;
  Activation activation = Activation::silu;
  bool gated = true;               // activation(gate) * up; otherwise activation(up)
  bool learned_positions = false;  // otherwise rotary
  RopeConfig rope;
  bool qkv_bias = false, out_bias = false, mlp_bias = false, norm_bias = false;
  bool qk_norm = false;          // queries and keys are normalized per head
  bool tied = false;             // the head is the embedding
  std::vector<int64_t> windows;  // per layer: how many keys a query attends to, itself included; 0 = all before it
  double init_range = 0.02;
  std::string dtype = "float32";  // as the file names it
  int64_t num_labels = 0;         // of a folder with a score head; 0 = a language model
  Json source;                    // the file itself, so that saving keeps what is not used here

  [[nodiscard]] int64_t q_size() const { return num_heads * head_dim; }
  [[nodiscard]] int64_t kv_size() const { return num_kv_heads * head_dim; }
  [[nodiscard]] int64_t qkv_size() const { return q_size() + 2 * kv_size(); }
  [[nodiscard]] int64_t gate_up_size() const { return gated ? 2 * mlp_size : mlp_size; }
};

[[nodiscard]] std::string_view name_of(Family family);
[[nodiscard]] std::string_view name_of(Activation activation);

// Errors open with `origin`, the file's name, and name the key.
[[nodiscard]] ModelConfig parse_model_config(const Json& json, const std::string& origin);
[[nodiscard]] ModelConfig load_model_config(const Path& folder);

// The config.json of this model with `dtype` weights: the source if there is one, with the architecture, the dtype and the
// labels set. `num_labels` 0 is a language model.
[[nodiscard]] Json config_json(const ModelConfig& config, std::string_view dtype, int64_t num_labels);

}  // namespace kedge
