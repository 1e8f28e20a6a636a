#include "kedge/model/spec/parameter_layout.h"

#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

using Init = ParameterSpec::Init;

ParameterSpec matrix(std::string name, int64_t rows, int64_t columns) { return {std::move(name), {rows, columns}, true, Init::normal, -1}; }
ParameterSpec scale(std::string name, int64_t size) { return {std::move(name), {size}, false, Init::ones, -1}; }
ParameterSpec shift(std::string name, int64_t size) { return {std::move(name), {size}, false, Init::zeros, -1}; }

LayerParameters add_layer(ModelParameters& all, const ModelConfig& config, int64_t index) {
  const std::string prefix = str("layers.", index, ".");
  const int64_t hidden = config.hidden_size;
  const auto bias = [&](bool wanted, const char* name, int64_t size) { return wanted ? all.add(shift(prefix + name, size)) : -1; };
  LayerParameters layer;
  layer.norm1 = all.add(scale(prefix + "norm1", hidden));
  layer.norm1_bias = bias(config.norm_bias, "norm1.bias", hidden);
  layer.qkv = all.add(matrix(prefix + "qkv", config.qkv_size(), hidden));
  layer.qkv_bias = bias(config.qkv_bias, "qkv.bias", config.qkv_size());
  if (config.qk_norm) {
    layer.q_norm = all.add(scale(prefix + "q_norm", config.head_dim));
    layer.k_norm = all.add(scale(prefix + "k_norm", config.head_dim));
  }
  layer.out = all.add(matrix(prefix + "out", hidden, config.q_size()));
  layer.out_bias = bias(config.out_bias, "out.bias", hidden);
  layer.norm2 = all.add(scale(prefix + "norm2", hidden));
  layer.norm2_bias = bias(config.norm_bias, "norm2.bias", hidden);
  layer.gate_up = all.add(matrix(prefix + "gate_up", config.gate_up_size(), hidden));
  layer.gate_up_bias = bias(config.mlp_bias, "gate_up.bias", config.gate_up_size());
  layer.down = all.add(matrix(prefix + "down", hidden, config.mlp_size));
  layer.down_bias = bias(config.mlp_bias, "down.bias", hidden);
  return layer;
}

// Writes a family's table row by row.
class TableWriter {
 public:
  explicit TableWriter(const ModelParameters& parameters) : parameters_(parameters) {}

  void whole(std::string name, int parameter) {
    if (parameter >= 0) rows(std::move(name), parameter, 0, spec(parameter).shape[0]);
  }
  void rows(std::string name, int parameter, int64_t row, int64_t rows) {
    if (parameter < 0) return;
    std::vector<int64_t> shape = spec(parameter).shape;
    shape[0] = rows;
    slices_.push_back({std::move(name), parameter, row, rows, false, std::move(shape), {}});
  }
  void transposed(std::string name, int parameter) {
    const auto& shape = spec(parameter).shape;
    slices_.push_back({std::move(name), parameter, 0, shape[0], true, {shape[1], shape[0]}, {}});
  }
  WeightSlice& last() { return slices_.back(); }
  std::vector<WeightSlice> take() { return std::move(slices_); }

 private:
  [[nodiscard]] const ParameterSpec& spec(int parameter) const { return parameters_.specs[static_cast<size_t>(parameter)]; }

  const ModelParameters& parameters_;
  std::vector<WeightSlice> slices_;
};

void write_llama_layer(TableWriter& table, const ModelConfig& config, const LayerParameters& layer, const std::string& prefix) {
  const int64_t q = config.q_size(), kv = config.kv_size(), mlp = config.mlp_size;
  const auto split_qkv = [&](int parameter, const char* what) {
    table.rows(prefix + "self_attn.q_proj." + what, parameter, 0, q);
    table.rows(prefix + "self_attn.k_proj." + what, parameter, q, kv);
    table.rows(prefix + "self_attn.v_proj." + what, parameter, q + kv, kv);
  };
  table.whole(prefix + "input_layernorm.weight", layer.norm1);
  split_qkv(layer.qkv, "weight");
  split_qkv(layer.qkv_bias, "bias");
  table.whole(prefix + "self_attn.q_norm.weight", layer.q_norm);
  table.whole(prefix + "self_attn.k_norm.weight", layer.k_norm);
  table.whole(prefix + "self_attn.o_proj.weight", layer.out);
  table.whole(prefix + "self_attn.o_proj.bias", layer.out_bias);
  table.whole(prefix + "post_attention_layernorm.weight", layer.norm2);
  for (const auto& [parameter, what] : {std::pair(layer.gate_up, "weight"), std::pair(layer.gate_up_bias, "bias")}) {
    table.rows(prefix + "mlp.gate_proj." + what, parameter, 0, mlp);
    table.rows(prefix + "mlp.up_proj." + what, parameter, mlp, mlp);
  }
  table.whole(prefix + "mlp.down_proj.weight", layer.down);
  table.whole(prefix + "mlp.down_proj.bias", layer.down_bias);
}

void write_gpt2_layer(TableWriter& table, const LayerParameters& layer, const std::string& prefix) {
  table.whole(prefix + "ln_1.weight", layer.norm1);
  table.whole(prefix + "ln_1.bias", layer.norm1_bias);
  table.transposed(prefix + "attn.c_attn.weight", layer.qkv);
  table.whole(prefix + "attn.c_attn.bias", layer.qkv_bias);
  table.transposed(prefix + "attn.c_proj.weight", layer.out);
  table.whole(prefix + "attn.c_proj.bias", layer.out_bias);
  table.whole(prefix + "ln_2.weight", layer.norm2);
  table.whole(prefix + "ln_2.bias", layer.norm2_bias);
  table.transposed(prefix + "mlp.c_fc.weight", layer.gate_up);
  table.whole(prefix + "mlp.c_fc.bias", layer.gate_up_bias);
  table.transposed(prefix + "mlp.c_proj.weight", layer.down);
  table.whole(prefix + "mlp.c_proj.bias", layer.down_bias);
}

std::string body_prefix(const ModelConfig& config) { return config.family == Family::gpt2 ? "transformer." : "model."; }

std::string layer_prefix(const ModelConfig& config, int64_t layer) {
  return str(body_prefix(config), config.family == Family::gpt2 ? "h." : "layers.", layer, ".");
}

}  // namespace

int64_t ParameterSpec::size() const {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  return size;
}

int ModelParameters::add(ParameterSpec spec) {
  specs.push_back(std::move(spec));
  return static_cast<int>(specs.size()) - 1;
}

ModelParameters make_parameters(const ModelConfig& config, const HeadOptions& head) {
  ModelParameters all;
  all.embedding = all.add(matrix("embedding", config.vocab_size, config.hidden_size));
  if (config.learned_positions) all.positions = all.add(matrix("positions", config.max_positions, config.hidden_size));
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const size_t first = all.specs.size();
    all.layers.push_back(add_layer(all, config, i));
    for (size_t place = first; place < all.specs.size(); ++place) all.specs[place].layer = i;
  }
  all.norm = all.add(scale("norm", config.hidden_size));
  if (config.norm_bias) all.norm_bias = all.add(shift("norm.bias", config.hidden_size));
  if (head.kind == HeadKind::score) {
    all.score = all.add(matrix("score", head.num_labels, config.hidden_size));
    if (head.score_bias) all.score_bias = all.add(shift("score.bias", head.num_labels));
  } else {
    all.head = config.tied ? all.embedding : all.add(matrix("head", config.vocab_size, config.hidden_size));
  }
  return all;
}

std::vector<WeightSlice> parameter_layout(const ModelConfig& config, const ModelParameters& parameters) {
  TableWriter table(parameters);
  const bool gpt2 = config.family == Family::gpt2;
  const std::string prefix = body_prefix(config);
  table.whole(prefix + (gpt2 ? "wte.weight" : "embed_tokens.weight"), parameters.embedding);
  if (config.tied && parameters.head >= 0) table.last().other_names.emplace_back("lm_head.weight");
  if (parameters.positions >= 0) table.whole(prefix + "wpe.weight", parameters.positions);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const LayerParameters& layer = parameters.layers[static_cast<size_t>(i)];
    gpt2 ? write_gpt2_layer(table, layer, layer_prefix(config, i)) : write_llama_layer(table, config, layer, layer_prefix(config, i));
  }
  table.whole(prefix + (gpt2 ? "ln_f.weight" : "norm.weight"), parameters.norm);
  table.whole(prefix + "ln_f.bias", parameters.norm_bias);
  if (parameters.head != parameters.embedding) table.whole("lm_head.weight", parameters.head);
  table.whole("score.weight", parameters.score);
  table.whole("score.bias", parameters.score_bias);
  std::vector<WeightSlice> slices = table.take();
  // Folders of the bare body leave its prefix out.
  for (WeightSlice& slice : slices)
    if (slice.name.starts_with(prefix)) slice.other_names.push_back(slice.name.substr(prefix.size()));
  return slices;
}

bool is_constant_buffer(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

std::vector<LinearSlice> linear_slices(const ModelConfig& config, const ModelParameters& parameters) {
  std::vector<LinearSlice> slices;
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const LayerParameters& layer = parameters.layers[static_cast<size_t>(i)];
    const std::string prefix = layer_prefix(config, i);
    const auto add = [&](const std::string& path, int parameter, int64_t row, int64_t rows) {
      const int64_t in_size = parameters.specs[static_cast<size_t>(parameter)].shape[1];
      slices.push_back({prefix + path, path.substr(path.rfind('.') + 1), i, parameter, row, rows, in_size});
    };
    const int64_t q = config.q_size(), kv = config.kv_size(), hidden = config.hidden_size;
    if (config.family == Family::gpt2) {
      add("attn.c_attn", layer.qkv, 0, config.qkv_size());
      add("attn.c_proj", layer.out, 0, hidden);
      add("mlp.c_fc", layer.gate_up, 0, config.mlp_size);
      add("mlp.c_proj", layer.down, 0, hidden);
      continue;
    }
    add("self_attn.q_proj", layer.qkv, 0, q);
    add("self_attn.k_proj", layer.qkv, q, kv);
    add("self_attn.v_proj", layer.qkv, q + kv, kv);
    add("self_attn.o_proj", layer.out, 0, hidden);
    add("mlp.gate_proj", layer.gate_up, 0, config.mlp_size);
    add("mlp.up_proj", layer.gate_up, config.mlp_size, config.mlp_size);
    add("mlp.down_proj", layer.down, 0, hidden);
  }
  return slices;
}

std::vector<ParameterSpec> adapter_specs(const std::vector<LinearSlice>& slices, int64_t rank, const AdapterHead& head) {
  std::vector<ParameterSpec> specs;
  for (const LinearSlice& slice : slices) {
    specs.push_back({slice.module + ".lora_A.weight", {rank, slice.in_size}, true, ParameterSpec::Init::normal, -1});
    specs.push_back({slice.module + ".lora_B.weight", {slice.rows, rank}, true, ParameterSpec::Init::zeros, -1});
  }
  if (!head.shape.empty()) specs.push_back({"score.weight", head.shape, true, ParameterSpec::Init::normal, -1});
  if (head.bias) specs.push_back({"score.bias", {head.shape[0]}, false, ParameterSpec::Init::zeros, -1});
  return specs;
}

}  // namespace kedge
