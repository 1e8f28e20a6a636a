#include "kedge/model/spec/model_config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "kedge/core/error.h"

namespace kedge {
namespace {

struct FamilyNames {
  std::string_view model_type, causal, scoring;
};

// In the order of the enum.
constexpr std::array<FamilyNames, 5> kFamilies = {{{"llama", "LlamaForCausalLM", "LlamaForSequenceClassification"},
                                                   {"mistral", "MistralForCausalLM", "MistralForSequenceClassification"},
                                                   {"qwen2", "Qwen2ForCausalLM", "Qwen2ForSequenceClassification"},
                                                   {"qwen3", "Qwen3ForCausalLM", "Qwen3ForSequenceClassification"},
                                                   {"gpt2", "GPT2LMHeadModel", "GPT2ForSequenceClassification"}}};

constexpr std::array<std::pair<std::string_view, Activation>, 9> kActivations = {{{"silu", Activation::silu},
                                                                                  {"swish", Activation::silu},
                                                                                  {"gelu", Activation::gelu},
                                                                                  {"gelu_new", Activation::gelu_tanh},
                                                                                  {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                                  {"gelu_fast", Activation::gelu_tanh},
                                                                                  {"relu", Activation::relu},
                                                                                  {"relu2", Activation::relu2},
                                                                                  {"relu_squared", Activation::relu2}}};

constexpr int64_t kMaxLayers = 10000;  // what is kept for each is made before the weights show how many there are

// Typed look-ups that name file and key; null counts as absent, as transformers has it.
class Reader {
 public:
  Reader(const Json& json, const std::string& origin) : json_(json), origin_(origin) {}

  [[nodiscard]] const Json* find(std::string_view key) const {
    const Json* value = json_.find(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  [[nodiscard]] std::string where(std::string_view key) const { return str(origin_, ": ", key); }

  [[nodiscard]] int64_t size(std::string_view key, std::optional<int64_t> otherwise = {}) const {
    const Json* value = find(key);
    if (value == nullptr && otherwise) return *otherwise;
    check(value != nullptr, origin_, ": no \"", key, "\" field");
    const int64_t number = value->as_integer(where(key));
    check(number > 0 && number < (int64_t{1} << 31), where(key), ": ", number, " is not a size");
    return number;
  }
  [[nodiscard]] int64_t num_layers(std::string_view key) const {
    const int64_t number = size(key);
    check(number <= kMaxLayers, where(key), ": ", number, " layers; at most ", kMaxLayers, " are read");
    return number;
  }
  [[nodiscard]] double number(std::string_view key, double otherwise) const {
    const Json* value = find(key);
    return value == nullptr ? otherwise : value->as_number(where(key));
  }
  [[nodiscard]] int64_t integer(std::string_view key, int64_t otherwise) const {
    const Json* value = find(key);
    return value == nullptr ? otherwise : value->as_integer(where(key));
  }
  [[nodiscard]] bool flag(std::string_view key, bool otherwise) const {
    const Json* value = find(key);
    return value == nullptr ? otherwise : value->as_bool(where(key));
  }
  [[nodiscard]] std::string text(std::string_view key, std::string otherwise) const {
    const Json* value = find(key);
    return value == nullptr ? std::move(otherwise) : value->as_text(where(key));
  }
  // An unsupported setting that would change the results.
  void refuse(std::string_view key, bool harmless) const { check(harmless, where(key), ": ", find(key)->dump(), " is not supported"); }
  void refuse_flag(std::string_view key) const {
    if (find(key) != nullptr) refuse(key, !flag(key, false));
  }

  [[nodiscard]] const Json& json() const { return json_; }
  [[nodiscard]] const std::string& origin() const { return origin_; }

 private:
  const Json& json_;
  const std::string& origin_;
};

Activation read_activation(const Reader& read, std::string_view key, std::string_view otherwise) {
  const std::string name = read.text(key, std::string(otherwise));
  for (const auto& [known, activation] : kActivations)
    if (name == known) return activation;
  throw UsageError(
      str(read.where(key), ": the activation \"", name, "\" is not supported; known are silu, gelu, gelu_new, relu and relu2"));
}

std::string read_dtype(const Reader& read) {
  std::string name = read.text("dtype", read.text("torch_dtype", "float32"));
  if (name.starts_with("torch.")) name.erase(0, 6);
  return name;
}

int64_t read_num_labels(const Reader& read) {
  const Json* architectures = read.find("architectures");
  if (architectures == nullptr) return 0;
  const auto& names = architectures->as_array(read.where("architectures"));
  const bool scores = std::any_of(names.begin(), names.end(), [&](const Json& name) {
    return name.as_text(read.where("architectures")).ends_with("ForSequenceClassification");
  });
  if (!scores) return 0;
  if (const Json* labels = read.find("id2label")) {
    const auto count = static_cast<int64_t>(labels->as_object(read.where("id2label")).size());
    check(count > 0, read.where("id2label"), ": no labels");
    return count;
  }
  return read.size("num_labels", 2);  // transformers' default
}

std::vector<int64_t> read_windows(const Reader& read, const ModelConfig& config) {
  std::vector<int64_t> windows(static_cast<size_t>(config.num_layers), 0);
  if (config.family == Family::llama) return windows;
  const bool always = config.family == Family::mistral;
  if (!always && !read.flag("use_sliding_window", false)) return windows;
  // An absent key is the class's 4096, a null one means no window.
  const Json* given = read.json().find("sliding_window");
  if (given != nullptr && given->is_null()) return windows;
  const int64_t window = given == nullptr ? 4096 : read.size("sliding_window");
  const int64_t first = always ? 0 : read.integer("max_window_layers", 28);
  const Json* types = read.find("layer_types");
  if (types != nullptr)
    check(types->as_array(read.where("layer_types")).size() == windows.size(), read.where("layer_types"), ": ", types->as_array("").size(),
          " entries for ", config.num_layers, " layers");
  for (size_t layer = 0; layer < windows.size(); ++layer) {
    bool slides = static_cast<int64_t>(layer) >= first;
    if (types != nullptr) {
      const std::string& type = types->as_array("")[layer].as_text(read.where("layer_types"));
      check(type == "full_attention" || type == "sliding_attention", read.where("layer_types"), ": \"", type, "\" is not supported");
      slides = type == "sliding_attention";
    }
    windows[layer] = slides ? window : 0;
  }
  return windows;
}

// YaRN's angles are made for sequences that are longer than the length before stretching by its factor.
int64_t context_of(const RopeConfig& rope) {
  if (rope.type != RopeType::yarn) return rope.max_positions;
  constexpr double kMost = std::numeric_limits<int32_t>::max();
  return std::max(rope.max_positions, static_cast<int64_t>(std::min(rope.factor * static_cast<double>(rope.original_positions), kMost)));
}

void read_llama_like(const Reader& read, ModelConfig& config) {
  config.vocab_size = read.size("vocab_size");
  config.hidden_size = read.size("hidden_size");
  config.num_layers = read.num_layers("num_hidden_layers");
  config.num_heads = read.size("num_attention_heads");
  config.num_kv_heads = read.size("num_key_value_heads", config.family == Family::mistral ? 8 : config.num_heads);
  config.mlp_size = read.size("intermediate_size");
  const bool explicit_dim = read.find("head_dim") != nullptr || config.family == Family::qwen3;
  check(explicit_dim || config.hidden_size % config.num_heads == 0, read.where("hidden_size"), ": ", config.hidden_size,
        " is not a multiple of num_attention_heads ", config.num_heads);
  config.head_dim = read.size("head_dim", config.family == Family::qwen3 ? 128 : config.hidden_size / config.num_heads);
  config.max_positions = read.size("max_position_embeddings", config.family == Family::llama ? 2048 : 32768);
  config.norm_eps = read.number("rms_norm_eps", 1e-6);
  config.activation = read_activation(read, "hidden_act", "silu");
  config.init_range = read.number("initializer_range", 0.02);
  config.tied = read.flag("tie_word_embeddings", false);
  config.mlp_bias = config.family == Family::llama && read.flag("mlp_bias", false);
  const bool attention_bias = read.flag("attention_bias", false) && (config.family == Family::llama || config.family == Family::qwen3);
  config.qkv_bias = attention_bias || config.family == Family::qwen2;
  config.out_bias = attention_bias;
  config.qk_norm = config.family == Family::qwen3;
  config.rope = parse_rope(read.json(), config.head_dim, config.max_positions, read.origin());
  config.max_positions = context_of(config.rope);
  config.windows = read_windows(read, config);
}

void read_gpt2(const Reader& read, ModelConfig& config) {
  config.vocab_size = read.size("vocab_size");
  config.hidden_size = read.size("n_embd");
  config.num_layers = read.num_layers("n_layer");
  config.num_heads = read.size("n_head");
  config.num_kv_heads = config.num_heads;
  check(config.hidden_size % config.num_heads == 0, read.where("n_embd"), ": ", config.hidden_size, " is not a multiple of n_head ",
        config.num_heads);
  config.head_dim = config.hidden_size / config.num_heads;
  config.mlp_size = read.size("n_inner", 4 * config.hidden_size);
  config.max_positions = read.size("n_positions", 1024);
  config.norm = NormKind::layer;
  config.norm_eps = read.number("layer_norm_epsilon", 1e-5);
  config.activation = read_activation(read, "activation_function", "gelu_new");
  config.gated = false;
  config.learned_positions = true;
  config.qkv_bias = config.out_bias = config.mlp_bias = config.norm_bias = true;
  config.tied = read.flag("tie_word_embeddings", true);
  config.init_range = read.number("initializer_range", 0.02);
  config.windows.assign(static_cast<size_t>(config.num_layers), 0);
  if (read.find("scale_attn_weights") != nullptr) read.refuse("scale_attn_weights", read.flag("scale_attn_weights", true));
  read.refuse_flag("scale_attn_by_inverse_layer_idx");
  read.refuse_flag("add_cross_attention");
}

Family read_family(const Reader& read) {
  const std::string type = read.text("model_type", "");
  for (size_t i = 0; i < kFamilies.size(); ++i)
    if (type == kFamilies[i].model_type) return static_cast<Family>(i);
  throw UsageError(str(read.where("model_type"), ": ", type.empty() ? "missing" : "\"" + type + "\" is not supported",
                       "; known are llama, mistral, qwen2, qwen3 and gpt2"));
}

const FamilyNames& names_of(Family family) { return kFamilies[static_cast<size_t>(family)]; }

}  // namespace

std::string_view name_of(Family family) { return names_of(family).model_type; }

std::string_view name_of(Activation activation) {
  return std::find_if(kActivations.begin(), kActivations.end(), [&](const auto& entry) { return entry.second == activation; })->first;
}

ModelConfig parse_model_config(const Json& json, const std::string& origin) {
  static_cast<void>(json.as_object(origin));
  const Reader read(json, origin);
  ModelConfig config;
  config.family = read_family(read);
  if (const Json* quantized = read.find("quantization_config"))
    throw UsageError(str(origin, ": quantization_config: quantized weights are not supported (", quantized->dump().substr(0, 80), ")"));
  config.family == Family::gpt2 ? read_gpt2(read, config) : read_llama_like(read, config);
  check(config.num_heads % config.num_kv_heads == 0, origin, ": num_attention_heads ", config.num_heads,
        " is not a multiple of num_key_value_heads ", config.num_kv_heads);
  check(config.norm_eps >= 0, origin, ": the norms' epsilon is ", config.norm_eps);
  config.dtype = read_dtype(read);
  config.num_labels = read_num_labels(read);
  config.source = json;
  return config;
}

ModelConfig load_model_config(const Path& folder) {
  const Path file = folder / "config.json";
  return parse_model_config(Json::parse(read_text(file), file.string()), file.string());
}

Json config_json(const ModelConfig& config, std::string_view dtype, int64_t num_labels) {
  ensure(config.source.is_object(), "a model configuration without its source");
  Json json = config.source;
  const FamilyNames& names = names_of(config.family);
  json.set("architectures", Json::Array{Json(num_labels > 0 ? names.scoring : names.causal)});
  json.set(json.find("torch_dtype") != nullptr && json.find("dtype") == nullptr ? "torch_dtype" : "dtype", dtype);
  if (num_labels > 0) {
    Json id2label, label2id;
    for (int64_t i = 0; i < num_labels; ++i) {
      id2label.set(std::to_string(i), str("LABEL_", i));
      label2id.set(str("LABEL_", i), i);
    }
    json.set("id2label", id2label);
    json.set("label2id", label2id);
  }
  return json;
}

}  // namespace kedge
