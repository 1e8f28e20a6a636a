#include "kedge/model/spec/shapes.h"

#include <array>

#include "kedge/config/nearest.h"
#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr std::array<NamedShape, 13> kShapes = {{
    {"tiny",
     "",
     "for tests: a step takes milliseconds",
     {.hidden_size = 64, .num_layers = 2, .num_heads = 4, .num_kv_heads = 2, .mlp_size = 192, .vocab_size = 512, .max_positions = 512}},
    {"nano",
     "30m",
     "learns simple stories on a CPU",
     {.hidden_size = 512, .num_layers = 8, .num_heads = 8, .num_kv_heads = 4, .mlp_size = 1376, .vocab_size = 8192, .max_positions = 2048}},
    {"135m",
     "",
     "as SmolLM 135M",
     {.hidden_size = 576,
      .num_layers = 30,
      .num_heads = 9,
      .num_kv_heads = 3,
      .mlp_size = 1536,
      .vocab_size = 49152,
      .max_positions = 2048,
      .tied = true,
      .norm_eps = 1e-5}},
    {"0.6b",
     "qwen3-0.6b",
     "as Qwen3 0.6B",
     {.family = Family::qwen3,
      .hidden_size = 1024,
      .num_layers = 28,
      .num_heads = 16,
      .num_kv_heads = 8,
      .head_dim = 128,
      .mlp_size = 3072,
      .vocab_size = 151936,
      .max_positions = 40960,
      .tied = true,
      .rope_theta = 1e6}},
    {"1b",
     "",
     "as Llama 3.2 1B, with Llama 3's positions",
     {.hidden_size = 2048,
      .num_layers = 16,
      .num_heads = 32,
      .num_kv_heads = 8,
      .mlp_size = 8192,
      .vocab_size = 128256,
      .max_positions = 8192,
      .tied = true,
      .rope_theta = 500000,
      .norm_eps = 1e-5}},
    {"4b",
     "qwen3-4b",
     "as Qwen3 4B",
     {.family = Family::qwen3,
      .hidden_size = 2560,
      .num_layers = 36,
      .num_heads = 32,
      .num_kv_heads = 8,
      .head_dim = 128,
      .mlp_size = 9728,
      .vocab_size = 151936,
      .max_positions = 40960,
      .tied = true,
      .rope_theta = 1e6}},
    {"8b",
     "",
     "as Llama 3 8B",
     {.hidden_size = 4096,
      .num_layers = 32,
      .num_heads = 32,
      .num_kv_heads = 8,
      .mlp_size = 14336,
      .vocab_size = 128256,
      .max_positions = 8192,
      .rope_theta = 500000,
      .norm_eps = 1e-5}},
    {"qwen2.5-0.5b",
     "",
     "as Qwen2.5 0.5B",
     {.family = Family::qwen2,
      .hidden_size = 896,
      .num_layers = 24,
      .num_heads = 14,
      .num_kv_heads = 2,
      .mlp_size = 4864,
      .vocab_size = 151936,
      .max_positions = 32768,
      .tied = true,
      .rope_theta = 1e6}},
    {"qwen2.5-1.5b",
     "",
     "as Qwen2.5 1.5B",
     {.family = Family::qwen2,
      .hidden_size = 1536,
      .num_layers = 28,
      .num_heads = 12,
      .num_kv_heads = 2,
      .mlp_size = 8960,
      .vocab_size = 151936,
      .max_positions = 32768,
      .tied = true,
      .rope_theta = 1e6}},
    {"qwen2.5-3b",
     "",
     "as Qwen2.5 3B",
     {.family = Family::qwen2,
      .hidden_size = 2048,
      .num_layers = 36,
      .num_heads = 16,
      .num_kv_heads = 2,
      .mlp_size = 11008,
      .vocab_size = 151936,
      .max_positions = 32768,
      .tied = true,
      .rope_theta = 1e6}},
    {"qwen2.5-7b",
     "",
     "as Qwen2.5 7B",
     {.family = Family::qwen2,
      .hidden_size = 3584,
      .num_layers = 28,
      .num_heads = 28,
      .num_kv_heads = 4,
      .mlp_size = 18944,
      .vocab_size = 152064,
      .max_positions = 32768,
      .rope_theta = 1e6}},
    {"qwen3-1.7b",
     "",
     "as Qwen3 1.7B",
     {.family = Family::qwen3,
      .hidden_size = 2048,
      .num_layers = 28,
      .num_heads = 16,
      .num_kv_heads = 8,
      .head_dim = 128,
      .mlp_size = 6144,
      .vocab_size = 151936,
      .max_positions = 40960,
      .tied = true,
      .rope_theta = 1e6}},
    {"qwen3-8b",
     "",
     "as Qwen3 8B",
     {.family = Family::qwen3,
      .hidden_size = 4096,
      .num_layers = 36,
      .num_heads = 32,
      .num_kv_heads = 8,
      .head_dim = 128,
      .mlp_size = 12288,
      .vocab_size = 151936,
      .max_positions = 40960,
      .rope_theta = 1e6}},
}};

Json gpt2_json(const ModelShape& shape) {
  Json json;
  json.set("model_type", "gpt2");
  json.set("vocab_size", shape.vocab_size);
  json.set("n_embd", shape.hidden_size);
  json.set("n_layer", shape.num_layers);
  json.set("n_head", shape.num_heads);
  json.set("n_inner", shape.mlp_size);
  json.set("n_positions", shape.max_positions);
  json.set("activation_function", "gelu_new");
  json.set("layer_norm_epsilon", 1e-5);
  // What is dropped in training elsewhere: kedge drops nothing.
  for (const char* key : {"attn_pdrop", "embd_pdrop", "resid_pdrop"}) json.set(key, 0.0);
  return json;
}

Json llama_like_json(const ModelShape& shape) {
  check(shape.head_dim > 0 || shape.hidden_size % shape.num_heads == 0, "hidden size ", shape.hidden_size, " is not a multiple of ",
        shape.num_heads, " heads, and no head dimension is given");
  Json json;
  json.set("model_type", name_of(shape.family));
  json.set("vocab_size", shape.vocab_size);
  json.set("hidden_size", shape.hidden_size);
  json.set("num_hidden_layers", shape.num_layers);
  json.set("num_attention_heads", shape.num_heads);
  json.set("num_key_value_heads", shape.num_kv_heads);
  json.set("head_dim", shape.head_dim > 0 ? shape.head_dim : shape.hidden_size / shape.num_heads);
  json.set("intermediate_size", shape.mlp_size);
  json.set("max_position_embeddings", shape.max_positions);
  json.set("hidden_act", "silu");
  json.set("rms_norm_eps", shape.norm_eps);
  json.set("rope_theta", shape.rope_theta);
  json.set("attention_dropout", 0.0);
  if (shape.family == Family::mistral) json.set("sliding_window", nullptr);
  if (shape.family == Family::qwen2 || shape.family == Family::qwen3) json.set("use_sliding_window", false);
  return json;
}

}  // namespace

std::span<const NamedShape> named_shapes() { return kShapes; }

ModelShape find_shape(std::string_view name, std::string_view where) {
  std::vector<std::string> known;
  std::string list;
  for (const NamedShape& entry : kShapes) {
    if (name == entry.name || (!name.empty() && name == entry.other_name)) return entry.shape;
    for (const std::string_view one : {entry.name, entry.other_name}) {
      if (one.empty()) continue;
      known.emplace_back(one);
      list += str(list.empty() ? "" : ", ", one);
    }
  }
  throw UsageError(str(where, ": no shape \"", name, "\"", nearest_hint(std::string(name), known), "; there are ", list));
}

Json shape_json(const ModelShape& shape) {
  Json json = shape.family == Family::gpt2 ? gpt2_json(shape) : llama_like_json(shape);
  json.set("initializer_range", 0.02);
  json.set("tie_word_embeddings", shape.tied);
  json.set("dtype", "float32");
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) json.set(key, nullptr);
  return json;
}

ModelConfig shape_config(std::string_view name) {
  return parse_model_config(shape_json(find_shape(name, "shape")), str("the shape ", name));
}

}  // namespace kedge
