#include "kedge/model/spec/parameter_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace kedge {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr const char* kLlama = R"({"model_type": "llama", "vocab_size": 31, "hidden_size": 24, "intermediate_size": 36,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "attention_bias": true, "mlp_bias": true})";
constexpr const char* kQwen3 = R"({"model_type": "qwen3", "vocab_size": 31, "hidden_size": 20, "intermediate_size": 28,
  "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 10, "tie_word_embeddings": true})";
constexpr const char* kGpt2 = R"({"model_type": "gpt2", "vocab_size": 31, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 64})";

ModelConfig config_of(const char* json) { return parse_model_config(Json::parse(json), "config.json"); }

std::map<std::string, WeightSlice> table_of(const ModelConfig& config, const HeadOptions& head = {}) {
  std::map<std::string, WeightSlice> table;
  for (WeightSlice& slice : parameter_layout(config, make_parameters(config, head))) table.emplace(slice.name, slice);
  return table;
}

TEST(WeightTable, SlicesCoverEveryParameterExactlyOnce) {
  for (const char* json : {kLlama, kQwen3, kGpt2})
    for (const HeadOptions& head : {HeadOptions{}, HeadOptions{HeadKind::score, 3, true}}) {
      const ModelConfig config = config_of(json);
      const ModelParameters parameters = make_parameters(config, head);
      std::vector<std::vector<int>> covered;
      for (const ParameterSpec& spec : parameters.specs) covered.emplace_back(static_cast<size_t>(spec.shape[0]), 0);
      for (const WeightSlice& slice : parameter_layout(config, parameters)) {
        const ParameterSpec& spec = parameters.specs[static_cast<size_t>(slice.parameter)];
        for (int64_t row = slice.row; row < slice.row + slice.rows; ++row)
          ++covered[static_cast<size_t>(slice.parameter)].at(static_cast<size_t>(row));
        std::vector<int64_t> shape = spec.shape;
        shape[0] = slice.rows;
        if (slice.transposed) std::reverse(shape.begin(), shape.end());
        EXPECT_EQ(slice.shape, shape) << slice.name;
      }
      for (size_t i = 0; i < covered.size(); ++i) EXPECT_THAT(covered[i], ::testing::Each(1)) << parameters.specs[i].name;
    }
}

TEST(WeightTable, ALlamaSplitsItsFusedRows) {
  const auto table = table_of(config_of(kLlama));
  const auto place = [&](const char* name) { return std::pair(table.at(name).row, table.at(name).rows); };
  EXPECT_EQ(place("model.layers.1.self_attn.q_proj.weight"), std::pair(int64_t{0}, int64_t{24}));
  EXPECT_EQ(place("model.layers.1.self_attn.k_proj.weight"), std::pair(int64_t{24}, int64_t{12}));
  EXPECT_EQ(place("model.layers.1.self_attn.v_proj.bias"), std::pair(int64_t{36}, int64_t{12}));
  EXPECT_EQ(place("model.layers.0.mlp.gate_proj.weight"), std::pair(int64_t{0}, int64_t{36}));
  EXPECT_EQ(place("model.layers.0.mlp.up_proj.bias"), std::pair(int64_t{36}, int64_t{36}));
  EXPECT_THAT(table.at("model.norm.weight").other_names, ElementsAre("norm.weight"));
  EXPECT_THAT(table.at("lm_head.weight").shape, ElementsAre(31, 24));
  EXPECT_EQ(table.size(), 1 + 2 * 16 + 1 + 1U);
}

TEST(WeightTable, ATiedHeadIsTheEmbeddingUnderAnotherName) {
  const ModelConfig config = config_of(kQwen3);
  const ModelParameters parameters = make_parameters(config, {});
  EXPECT_EQ(parameters.head, parameters.embedding);
  const auto table = table_of(config);
  EXPECT_FALSE(table.contains("lm_head.weight"));
  EXPECT_THAT(table.at("model.embed_tokens.weight").other_names, ElementsAre("lm_head.weight", "embed_tokens.weight"));
  EXPECT_THAT(table.at("model.layers.0.self_attn.q_norm.weight").shape, ElementsAre(10));
  const auto score = table_of(config, {HeadKind::score, 1, false});
  EXPECT_THAT(score.at("model.embed_tokens.weight").other_names, ElementsAre("embed_tokens.weight"));
}

TEST(WeightTable, AGpt2StoresItsMatricesTransposed) {
  const auto table = table_of(config_of(kGpt2));
  EXPECT_TRUE(table.at("transformer.h.0.attn.c_attn.weight").transposed);
  EXPECT_THAT(table.at("transformer.h.0.attn.c_attn.weight").shape, ElementsAre(24, 72));
  EXPECT_THAT(table.at("transformer.h.1.mlp.c_proj.weight").shape, ElementsAre(96, 24));
  EXPECT_FALSE(table.at("transformer.wpe.weight").transposed);
  EXPECT_TRUE(table.contains("transformer.ln_f.bias"));
}

TEST(WeightTable, ScoreHeadsHaveARowALabelAndABiasWhereAsked) {
  const auto with = table_of(config_of(kLlama), {HeadKind::score, 3, true});
  EXPECT_THAT(with.at("score.weight").shape, ElementsAre(3, 24));
  EXPECT_THAT(with.at("score.bias").shape, ElementsAre(3));
  EXPECT_FALSE(with.contains("lm_head.weight"));
  EXPECT_FALSE(table_of(config_of(kLlama), {HeadKind::score, 3, false}).contains("score.bias"));
}

TEST(WeightTable, MatricesDecayAndNormsAndBiasesDoNot) {
  for (const char* json : {kLlama, kQwen3, kGpt2})
    for (const ParameterSpec& spec : make_parameters(config_of(json), {HeadKind::score, 2, true}).specs) {
      EXPECT_EQ(spec.decays, spec.shape.size() == 2) << spec.name;
      const auto init = spec.shape.size() == 2         ? ParameterSpec::Init::normal
                        : spec.name.ends_with(".bias") ? ParameterSpec::Init::zeros
                                                       : ParameterSpec::Init::ones;
      EXPECT_EQ(spec.init, init) << spec.name;
    }
}

TEST(WeightTable, MasksAndRotaryTablesAreNothingToLoad) {
  for (const char* name : {"model.layers.0.self_attn.rotary_emb.inv_freq", "transformer.h.0.attn.bias", "h.11.attn.masked_bias"})
    EXPECT_TRUE(is_constant_buffer(name)) << name;
  for (const char* name : {"transformer.h.0.attn.c_attn.bias", "model.layers.0.self_attn.q_proj.bias", "score.bias"})
    EXPECT_FALSE(is_constant_buffer(name)) << name;
}

TEST(WeightTable, LinearSlicesAreTheRowsOfTheirWeights) {
  for (const char* json : {kLlama, kQwen3, kGpt2}) {
    const ModelConfig config = config_of(json);
    const auto table = table_of(config);
    const auto slices = linear_slices(config, make_parameters(config, {}));
    EXPECT_EQ(slices.size(), static_cast<size_t>(config.num_layers) * (config.family == Family::gpt2 ? 4 : 7));
    for (const LinearSlice& slice : slices) {
      const WeightSlice& weight = table.at(slice.module + ".weight");
      EXPECT_EQ(slice.parameter, weight.parameter);
      EXPECT_EQ(slice.row, weight.row);
      EXPECT_EQ(slice.rows, weight.rows);
      EXPECT_EQ(slice.in_size, weight.transposed ? weight.shape[0] : weight.shape[1]);
      EXPECT_TRUE(slice.module.ends_with("." + slice.kind));
      EXPECT_NE(slice.module.find(std::to_string(slice.layer)), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace kedge
