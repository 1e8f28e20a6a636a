#pragma once
// A model's fused parameters, and where each tensor of a Hugging Face folder is in them. One table per family;
// loading, saving and adapters all use it. Independent of tensors.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/model/spec/model_config.h"

namespace kedge {

struct ParameterSpec {
  std::string name;
  std::vector<int64_t> shape;
  bool decays = false;  // weight decay: matrices, but neither norms nor biases
  enum class Init { normal, ones, zeros } init = Init::normal;
  int64_t layer = -1;  // -1: outside the layers

  [[nodiscard]] int64_t size() const;
};

// Places of a layer's parameters in the list; -1 if the family has none.
struct LayerParameters {
  int norm1 = -1, norm1_bias = -1, qkv = -1, qkv_bias = -1, q_norm = -1, k_norm = -1, out = -1, out_bias = -1;
  int norm2 = -1, norm2_bias = -1, gate_up = -1, gate_up_bias = -1, down = -1, down_bias = -1;
};

struct ModelParameters {
  std::vector<ParameterSpec> specs;
  std::vector<LayerParameters> layers;
  int embedding = -1, positions = -1, norm = -1, norm_bias = -1;
  int head = -1;                    // of a language model; the embedding if they are tied
  int score = -1, score_bias = -1;  // of a reward or value model

  // The place of a new parameter.
  int add(ParameterSpec spec);
};

// A tensor of a folder: rows [row, row + rows) of a parameter, or its transpose.
struct WeightSlice {
  std::string name;  // "model.layers.0.self_attn.q_proj.weight"
  int parameter = -1;
  int64_t row = 0, rows = 0;
  bool transposed = false;               // GPT-2 stores [in, out]
  std::vector<int64_t> shape;            // in the file
  std::vector<std::string> other_names;  // alternative name
};

enum class HeadKind { language, score };

// The score head has a bias row if `score_bias`.
struct HeadOptions {
  HeadKind kind = HeadKind::language;
  int64_t num_labels = 1;
  bool score_bias = false;
};

[[nodiscard]] ModelParameters make_parameters(const ModelConfig& config, const HeadOptions& head);
[[nodiscard]] std::vector<WeightSlice> parameter_layout(const ModelConfig& config, const ModelParameters& parameters);

// Tensors some folders carry that hold nothing to load: masks and rotary tables.
[[nodiscard]] bool is_constant_buffer(std::string_view name);

// A linear layer as adapters see it: the module's name in the folder, its layer and its last part ("q_proj"), and which rows of
// which parameter are its outputs.
struct LinearSlice {
  std::string module;  // "model.layers.0.self_attn.q_proj"
  std::string kind;    // "q_proj"
  int64_t layer = 0;
  int parameter = -1;
  int64_t row = 0, rows = 0, in_size = 0;
};
[[nodiscard]] std::vector<LinearSlice> linear_slices(const ModelConfig& config, const ModelParameters& parameters);

struct AdapterHead {
  std::vector<int64_t> shape;  // empty: none
  bool bias = false;
};
// The parameters of adapters on these slices: two matrices per slice, then a score head.
[[nodiscard]] std::vector<ParameterSpec> adapter_specs(const std::vector<LinearSlice>& slices, int64_t rank, const AdapterHead& head);

}  // namespace kedge
