#include "kedge/model/spec/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::error_of;

ModelConfig parse(const std::string& json) { return parse_model_config(Json::parse(json), "config.json"); }

constexpr const char* kSizes = R"("vocab_size": 97, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3,
  "num_attention_heads": 6)";

std::string config(const std::string& type, const std::string& more = "") {
  return str(R"({"model_type": ")", type, "\", ", kSizes, more.empty() ? "" : ", ", more, "}");
}

std::string gpt2(const std::string& more = "") {
  return str(R"({"model_type": "gpt2", "vocab_size": 97, "n_embd": 48, "n_layer": 3, "n_head": 4)", more.empty() ? "" : ", ", more, "}");
}

std::string fault(const std::string& json) {
  return error_of([&] { return parse(json); });
}

TEST(ModelConfig, ALlamaOfTransformersFourAndFive) {
  const std::string common = R"("num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "hidden_act": "silu",
    "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": true, "architectures": ["LlamaForCausalLM"], )";
  const ModelConfig four = parse(config("llama", common + R"("torch_dtype": "bfloat16", "rope_theta": 500000.0, "rope_scaling": null)"));
  const ModelConfig five =
      parse(config("llama", common + R"("dtype": "bfloat16", "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0})"));
  for (const ModelConfig& found : {four, five}) {
    EXPECT_EQ(found.family, Family::llama);
    EXPECT_EQ(found.vocab_size, 97);
    EXPECT_EQ(found.hidden_size, 48);
    EXPECT_EQ(found.num_layers, 3);
    EXPECT_EQ(found.num_heads, 6);
    EXPECT_EQ(found.num_kv_heads, 2);
    EXPECT_EQ(found.head_dim, 8);
    EXPECT_EQ(found.mlp_size, 80);
    EXPECT_EQ(found.max_positions, 128);
    EXPECT_EQ(found.norm, NormKind::rms);
    EXPECT_EQ(found.norm_eps, 1e-5);
    EXPECT_EQ(found.activation, Activation::silu);
    EXPECT_TRUE(found.gated);
    EXPECT_TRUE(found.tied);
    EXPECT_FALSE(found.learned_positions || found.qkv_bias || found.out_bias || found.mlp_bias || found.norm_bias || found.qk_norm);
    EXPECT_EQ(found.rope.theta, 500000);
    EXPECT_EQ(found.rope.dim, 8);
    EXPECT_EQ(found.dtype, "bfloat16");
    EXPECT_EQ(found.num_labels, 0);
    EXPECT_THAT(found.windows, ElementsAre(0, 0, 0));
    EXPECT_EQ(found.qkv_size(), 48 + 16 + 16);
    EXPECT_EQ(found.gate_up_size(), 160);
  }
}

TEST(ModelConfig, ALlamaWithoutOptionalKeysIsThatOfTransformers) {
  const ModelConfig found = parse(config("llama"));
  EXPECT_EQ(found.num_kv_heads, 6);
  EXPECT_EQ(found.max_positions, 2048);
  EXPECT_EQ(found.norm_eps, 1e-6);
  EXPECT_EQ(found.rope.theta, 10000);
  EXPECT_EQ(found.init_range, 0.02);
  EXPECT_EQ(found.dtype, "float32");
  EXPECT_FALSE(found.tied);
  const ModelConfig nulls = parse(config("llama", R"("num_key_value_heads": null, "head_dim": null, "rope_scaling": null)"));
  EXPECT_EQ(nulls.num_kv_heads, 6);
  EXPECT_EQ(nulls.head_dim, 8);
}

TEST(ModelConfig, ALlamaMayHaveBiasesAndWiderHeads) {
  const ModelConfig found = parse(config("llama", R"("attention_bias": true, "mlp_bias": true, "head_dim": 16)"));
  EXPECT_TRUE(found.qkv_bias && found.out_bias && found.mlp_bias);
  EXPECT_EQ(found.head_dim, 16);
  EXPECT_EQ(found.q_size(), 96);
  EXPECT_EQ(found.rope.dim, 16);
}

TEST(ModelConfig, AMistralSlidesUnlessItsWindowIsNull) {
  EXPECT_THAT(parse(config("mistral", R"("num_key_value_heads": 2, "sliding_window": 7)")).windows, ElementsAre(7, 7, 7));
  EXPECT_THAT(parse(config("mistral", R"("num_key_value_heads": 2, "sliding_window": null)")).windows, ElementsAre(0, 0, 0));
  EXPECT_THAT(parse(config("mistral", R"("num_key_value_heads": 2)")).windows, Each(4096));
  EXPECT_THAT(parse(config("mistral", R"("num_key_value_heads": 2, "sliding_window": 7,
                "layer_types": ["full_attention", "sliding_attention", "full_attention"])"))
                  .windows,
              ElementsAre(0, 7, 0));
  const ModelConfig found = parse(config("mistral", R"("num_key_value_heads": 2, "attention_bias": true)"));
  EXPECT_FALSE(found.qkv_bias);  // transformers' Mistral reads no such key
  EXPECT_EQ(found.max_positions, 32768);
}

TEST(ModelConfig, AQwen2HasBiasesOnQueriesKeysAndValuesAlone) {
  const ModelConfig found = parse(config("qwen2", R"("num_key_value_heads": 2, "sliding_window": 5, "max_window_layers": 1)"));
  EXPECT_TRUE(found.qkv_bias);
  EXPECT_FALSE(found.out_bias || found.mlp_bias || found.qk_norm);
  EXPECT_THAT(found.windows, ElementsAre(0, 0, 0));  // use_sliding_window is off
}

TEST(ModelConfig, AQwen2SlidesFromItsLayerOnOrWhereTheListSaysSo) {
  EXPECT_THAT(parse(config("qwen2", R"("use_sliding_window": true, "sliding_window": 5, "max_window_layers": 1)")).windows,
              ElementsAre(0, 5, 5));
  EXPECT_THAT(parse(config("qwen2", R"("use_sliding_window": true, "sliding_window": 5, "max_window_layers": 0)")).windows, Each(5));
  EXPECT_THAT(parse(config("qwen2", R"("use_sliding_window": true, "sliding_window": 5, "max_window_layers": 1,
                "layer_types": ["sliding_attention", "full_attention", "sliding_attention"])"))
                  .windows,
              ElementsAre(5, 0, 5));
  EXPECT_EQ(fault(config("qwen2", R"("use_sliding_window": true, "layer_types": ["full_attention"])")),
            "config.json: layer_types: 1 entries for 3 layers");
  EXPECT_EQ(fault(config("qwen2", R"("use_sliding_window": true,
              "layer_types": ["full_attention", "chunked_attention", "full_attention"])")),
            "config.json: layer_types: \"chunked_attention\" is not supported");
}

TEST(ModelConfig, YarnStretchesTheContext) {
  const auto context = [](const std::string& rope) {
    return parse(config("qwen2", R"("max_position_embeddings": 40, "rope_scaling": )" + rope)).max_positions;
  };
  EXPECT_EQ(context(R"({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32})"), 128);
  EXPECT_EQ(context(R"({"type": "yarn", "factor": 2.0})"), 80);
  EXPECT_EQ(context(R"({"type": "yarn", "factor": 1.0, "original_max_position_embeddings": 32})"), 40);
  EXPECT_EQ(context(R"({"type": "yarn", "factor": 1e300})"), (int64_t{1} << 31) - 1);
  EXPECT_EQ(context(R"({"type": "linear", "factor": 2.0})"), 40);
}

TEST(ModelConfig, AQwen3NormsQueriesAndKeysAndHasHeadsOf128) {
  const ModelConfig found = parse(config("qwen3", R"("num_key_value_heads": 2)"));
  EXPECT_TRUE(found.qk_norm);
  EXPECT_EQ(found.head_dim, 128);
  EXPECT_FALSE(found.qkv_bias);
  const ModelConfig other = parse(config("qwen3", R"("head_dim": 16, "attention_bias": true,
    "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"})"));
  EXPECT_EQ(other.head_dim, 16);
  EXPECT_TRUE(other.qkv_bias && other.out_bias);
  EXPECT_EQ(other.rope.theta, 1000000);
}

TEST(ModelConfig, AGpt2) {
  const ModelConfig found = parse(gpt2());
  EXPECT_EQ(found.family, Family::gpt2);
  EXPECT_EQ(found.hidden_size, 48);
  EXPECT_EQ(found.num_kv_heads, 4);
  EXPECT_EQ(found.head_dim, 12);
  EXPECT_EQ(found.mlp_size, 192);
  EXPECT_EQ(found.max_positions, 1024);
  EXPECT_EQ(found.norm, NormKind::layer);
  EXPECT_EQ(found.norm_eps, 1e-5);
  EXPECT_EQ(found.activation, Activation::gelu_tanh);
  EXPECT_TRUE(found.learned_positions && found.tied && found.qkv_bias && found.out_bias && found.mlp_bias && found.norm_bias);
  EXPECT_FALSE(found.gated);
  EXPECT_EQ(found.gate_up_size(), 192);
  const ModelConfig other = parse(gpt2(R"("n_inner": 56, "n_positions": 64, "activation_function": "gelu", "tie_word_embeddings": false,
    "layer_norm_epsilon": 0.01, "scale_attn_weights": true, "scale_attn_by_inverse_layer_idx": false, "add_cross_attention": false)"));
  EXPECT_EQ(other.mlp_size, 56);
  EXPECT_EQ(other.max_positions, 64);
  EXPECT_EQ(other.activation, Activation::gelu);
  EXPECT_EQ(other.norm_eps, 0.01);
  EXPECT_FALSE(other.tied);
}

TEST(ModelConfig, EveryRefusedKeyIsNamed) {
  EXPECT_EQ(fault("{}"), "config.json: model_type: missing; known are llama, mistral, qwen2, qwen3 and gpt2");
  EXPECT_EQ(fault(R"({"model_type": "t5"})"),
            "config.json: model_type: \"t5\" is not supported; known are llama, mistral, qwen2, qwen3 and gpt2");
  EXPECT_EQ(fault("[]"), "config.json: expected an object, found []");
  EXPECT_EQ(fault(R"({"model_type": "llama"})"), "config.json: no \"vocab_size\" field");
  EXPECT_EQ(fault(R"({"model_type": "llama", "vocab_size": 0})"), "config.json: vocab_size: 0 is not a size");
  EXPECT_EQ(fault(R"({"model_type": "llama", "vocab_size": 2147483648})"), "config.json: vocab_size: 2147483648 is not a size");
  EXPECT_EQ(fault(R"({"model_type": "llama", "vocab_size": 97, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2147483647,
                      "num_attention_heads": 6})"),
            "config.json: num_hidden_layers: 2147483647 layers; at most 10000 are read");
  EXPECT_EQ(fault(R"({"model_type": "llama", "vocab_size": 1.5})"), "config.json: vocab_size: expected an integer, found 1.5");
  EXPECT_EQ(fault(config("llama", R"("hidden_act": "gelu_10")")),
            "config.json: hidden_act: the activation \"gelu_10\" is not supported; known are silu, gelu, gelu_new, relu and relu2");
  EXPECT_EQ(fault(config("llama", R"("num_key_value_heads": 4)")),
            "config.json: num_attention_heads 6 is not a multiple of num_key_value_heads 4");
  EXPECT_EQ(fault(R"({"model_type": "llama", "vocab_size": 9, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 1,
              "num_attention_heads": 5})"),
            "config.json: hidden_size: 48 is not a multiple of num_attention_heads 5");
  EXPECT_EQ(fault(config("llama", R"("rms_norm_eps": -1)")), "config.json: the norms' epsilon is -1");
  EXPECT_EQ(fault(config("llama", R"("quantization_config": {"bits": 4})")),
            "config.json: quantization_config: quantized weights are not supported ({\"bits\": 4})");
  EXPECT_EQ(fault(config("llama", R"("mlp_bias": 1)")), "config.json: mlp_bias: expected true or false, found 1");
  EXPECT_EQ(fault(R"({"model_type": "gpt2", "vocab_size": 9, "n_embd": 10, "n_layer": 1, "n_head": 3})"),
            "config.json: n_embd: 10 is not a multiple of n_head 3");
  EXPECT_EQ(fault(gpt2(R"("scale_attn_weights": false)")), "config.json: scale_attn_weights: false is not supported");
  EXPECT_EQ(fault(gpt2(R"("scale_attn_by_inverse_layer_idx": true)")),
            "config.json: scale_attn_by_inverse_layer_idx: true is not supported");
  EXPECT_EQ(fault(gpt2(R"("add_cross_attention": true)")), "config.json: add_cross_attention: true is not supported");
}

TEST(ModelConfig, ActivationsHaveTheirUsualNames) {
  for (const auto& [name, wanted] : std::vector<std::pair<std::string, Activation>>{{"silu", Activation::silu},
                                                                                    {"swish", Activation::silu},
                                                                                    {"gelu", Activation::gelu},
                                                                                    {"gelu_new", Activation::gelu_tanh},
                                                                                    {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                                    {"relu", Activation::relu},
                                                                                    {"relu2", Activation::relu2}})
    EXPECT_EQ(parse(config("llama", str(R"("hidden_act": ")", name, "\""))).activation, wanted) << name;
  EXPECT_EQ(name_of(Activation::gelu_tanh), "gelu_new");
  EXPECT_EQ(name_of(Activation::relu2), "relu2");
  EXPECT_EQ(name_of(Family::qwen3), "qwen3");
}

TEST(ModelConfig, DtypesMayCarryTorchsName) { EXPECT_EQ(parse(config("llama", R"("torch_dtype": "torch.float16")")).dtype, "float16"); }

TEST(ModelConfig, AScoreModelCountsItsLabels) {
  const std::string scores = R"("architectures": ["LlamaForSequenceClassification"])";
  EXPECT_EQ(parse(config("llama", scores)).num_labels, 2);
  EXPECT_EQ(parse(config("llama", scores + R"(, "num_labels": 5)")).num_labels, 5);
  EXPECT_EQ(parse(config("llama", scores + R"(, "id2label": {"0": "LABEL_0"})")).num_labels, 1);
  EXPECT_EQ(parse(config("llama", R"("id2label": {"0": "LABEL_0"})")).num_labels, 0);
  EXPECT_EQ(fault(config("llama", scores + R"(, "id2label": {})")), "config.json: id2label: no labels");
}

TEST(ModelConfig, TheFileIsWrittenBackWithArchitectureDtypeAndLabels) {
  const ModelConfig found = parse(config("llama", R"("torch_dtype": "float32", "bos_token_id": 1, "custom": [1, {"a": null}])"));
  const Json language = config_json(found, "bfloat16", 0);
  EXPECT_EQ(language.find("architectures")->dump(), R"(["LlamaForCausalLM"])");
  EXPECT_EQ(language.find("torch_dtype")->dump(), "\"bfloat16\"");
  EXPECT_EQ(language.find("dtype"), nullptr);
  EXPECT_EQ(language.find("custom")->dump(), R"([1, {"a": null}])");
  EXPECT_EQ(language.find("id2label"), nullptr);
  const Json score = config_json(found, "float32", 2);
  EXPECT_EQ(score.find("architectures")->dump(), R"(["LlamaForSequenceClassification"])");
  EXPECT_EQ(score.find("id2label")->dump(), R"({"0": "LABEL_0", "1": "LABEL_1"})");
  EXPECT_EQ(score.find("label2id")->dump(), R"({"LABEL_0": 0, "LABEL_1": 1})");
  EXPECT_EQ(parse_model_config(score, "again").num_labels, 2);
}

TEST(ModelConfig, ReadingWhatWasWrittenGivesTheSameShape) {
  for (const std::string& json : {config("llama", R"("rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 9})"),
                                  config("mistral", R"("num_key_value_heads": 2, "sliding_window": 7)"), config("qwen2"),
                                  config("qwen3", R"("head_dim": 16)"), gpt2()}) {
    const ModelConfig first = parse(json);
    const ModelConfig second = parse_model_config(config_json(first, "float32", 0), "again");
    EXPECT_EQ(first.family, second.family);
    EXPECT_EQ(first.rope, second.rope);
    EXPECT_EQ(first.windows, second.windows);
    EXPECT_EQ(first.qkv_size(), second.qkv_size());
    EXPECT_EQ(config_json(second, "float32", 0), config_json(first, "float32", 0));
  }
}

TEST(ModelConfig, AFolderIsNamedByItsFile) {
  const testing::TempFolder folder;
  folder.file("config.json", R"({"model_type": "t5"})");
  EXPECT_EQ(error_of([&] { return load_model_config(folder.path()); }),
            (folder / "config.json").string() + ": model_type: \"t5\" is not supported; known are llama, mistral, qwen2, qwen3 and gpt2");
}

TEST(ModelConfig, ARealFolder) {
  KEDGE_NEEDS_ASSET("models/tinystories-656k");
  const ModelConfig found = load_model_config(testing::asset("models/tinystories-656k"));
  EXPECT_EQ(found.vocab_size, 2048);
  EXPECT_EQ(found.num_kv_heads, 4);
  EXPECT_EQ(found.head_dim, 16);
  EXPECT_TRUE(found.tied);
}

}  // namespace
}  // namespace kedge
