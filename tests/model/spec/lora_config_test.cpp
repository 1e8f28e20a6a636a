#include "kedge/model/spec/lora_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;

std::vector<LinearSlice> slices_of(const char* json) {
  const ModelConfig config = parse_model_config(Json::parse(json), "config.json");
  return linear_slices(config, make_parameters(config, {}));
}

const std::vector<LinearSlice>& llama() {
  static const auto kSlices = slices_of(R"({"model_type": "llama", "vocab_size": 31, "hidden_size": 24, "intermediate_size": 36,
    "num_hidden_layers": 3, "num_attention_heads": 4})");
  return kSlices;
}
const std::vector<LinearSlice>& gpt2_slices() {
  static const auto kSlices = slices_of(R"({"model_type": "gpt2", "vocab_size": 31, "n_embd": 24, "n_layer": 3, "n_head": 3})");
  return kSlices;
}

std::vector<std::string> chosen(const std::vector<LinearSlice>& all, const std::vector<std::string>& targets,
                                const std::optional<std::vector<int64_t>>& layers = std::vector<int64_t>{2}) {
  LoraConfig config;
  config.target_modules = targets;
  config.layer_selection = layers;
  std::vector<std::string> names;
  for (const LinearSlice& slice : select_slices(config, all, 3, "peft")) names.push_back(slice.module.substr(slice.module.find(".1.") + 3));
  return names;
}

TEST(LoraConfig, GroupsMeanTheLayersOfEveryFamily) {
  EXPECT_THAT(chosen(llama(), {"attention_qkv"}), ElementsAre("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"));
  EXPECT_THAT(chosen(llama(), {"attention_dense"}), ElementsAre("self_attn.o_proj"));
  EXPECT_THAT(chosen(llama(), {"mlp_fc1"}), ElementsAre("mlp.gate_proj", "mlp.up_proj"));
  EXPECT_THAT(chosen(llama(), {"mlp_fc2"}), ElementsAre("mlp.down_proj"));
  EXPECT_EQ(chosen(llama(), {"attention"}).size(), 4U);
  EXPECT_EQ(chosen(llama(), {"mlp"}).size(), 3U);
  EXPECT_EQ(chosen(llama(), {"all"}).size(), 7U);
  EXPECT_EQ(chosen(llama(), {"all-linear"}).size(), 7U);
  EXPECT_THAT(chosen(gpt2_slices(), {"attention_qkv"}), ElementsAre("attn.c_attn"));
  EXPECT_THAT(chosen(gpt2_slices(), {"attention_dense"}), ElementsAre("attn.c_proj"));
  EXPECT_THAT(chosen(gpt2_slices(), {"mlp_fc1"}), ElementsAre("mlp.c_fc"));
  EXPECT_THAT(chosen(gpt2_slices(), {"mlp_fc2"}), ElementsAre("mlp.c_proj"));
  EXPECT_THAT(chosen(gpt2_slices(), {"attention"}), ElementsAre("attn.c_attn", "attn.c_proj"));
}

TEST(LoraConfig, NamesMeanTheEndOfAModuleAtADot) {
  EXPECT_THAT(chosen(llama(), {"q_proj", "down_proj"}), ElementsAre("self_attn.q_proj", "mlp.down_proj"));
  EXPECT_THAT(chosen(gpt2_slices(), {"c_proj"}), ElementsAre("attn.c_proj", "mlp.c_proj"));
  EXPECT_THAT(chosen(gpt2_slices(), {"mlp.c_proj"}), ElementsAre("mlp.c_proj"));
  EXPECT_THAT(error_of([] { return chosen(llama(), {"proj"}); }), ::testing::HasSubstr("\"proj\" is not a linear layer"));
}

TEST(LoraConfig, ASliceNamedTwiceIsChosenOnceInTheModelsOrder) {
  EXPECT_THAT(chosen(llama(), {"v_proj", "attention_qkv", "q_proj"}),
              ElementsAre("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"));
}

TEST(LoraConfig, LayersCountFromOne) {
  LoraConfig config;
  EXPECT_EQ(select_slices(config, llama(), 3, "peft").size(), 9U);
  config.layer_selection = std::vector<int64_t>{3, 1};
  const auto slices = select_slices(config, llama(), 3, "peft");
  ASSERT_EQ(slices.size(), 6U);
  EXPECT_EQ(slices.front().layer, 0);
  EXPECT_EQ(slices.back().layer, 2);
}

TEST(LoraConfig, WhatMeansNothingIsNamed) {
  EXPECT_EQ(
      error_of([] { return chosen(llama(), {"qproj"}); }),
      "peft.target_modules: \"qproj\" is not a linear layer of this model; it has down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, "
      "v_proj, and the groups attention_qkv, attention_dense, mlp_fc1, mlp_fc2, attention, mlp and all");
  EXPECT_EQ(error_of([] { return chosen(llama(), {"all"}, std::vector<int64_t>{0}); }),
            "peft.layer_selection: 0 is not one of the layers 1 to 3");
  EXPECT_EQ(error_of([] { return chosen(llama(), {"all"}, std::vector<int64_t>{4}); }),
            "peft.layer_selection: 4 is not one of the layers 1 to 3");
  EXPECT_EQ(error_of([] { return chosen(llama(), {}); }), "peft: no layer is selected");
  EXPECT_EQ(error_of([] { return chosen(llama(), {"all"}, std::vector<int64_t>{}); }), "peft: no layer is selected");
}

TEST(LoraConfig, TheScaleIsAlphaOverTheRankAndOneWithoutAlpha) {
  LoraConfig config;
  EXPECT_EQ(config.scale(), 1);
  config.adapter_dim = 4;
  config.alpha = 8;
  EXPECT_EQ(config.scale(), 2);
}

TEST(LoraConfig, KeysAreTheReferences) {
  LoraConfig config;
  static_cast<void>(
      load_section(describe(config),
                   {"lora.yaml", "adapter_dim: 8\nalpha: 16\nadapter_dropout: 0.1\ntarget_modules: [all]\nlayer_selection: [1, 2]\n"}, {}));
  EXPECT_EQ(config.adapter_dim, 8);
  EXPECT_EQ(config.alpha, 16);
  EXPECT_EQ(config.adapter_dropout, 0.1);
  EXPECT_THAT(config.target_modules, ElementsAre("all"));
  EXPECT_THAT(*config.layer_selection, ElementsAre(1, 2));
  EXPECT_THROW(static_cast<void>(load_section(describe(config), {"lora.yaml", "adapter_dropout: 1.0\n"}, {})), UsageError);
  EXPECT_THROW(static_cast<void>(load_section(describe(config), {"lora.yaml", "adapter_dim: 0\n"}, {})), UsageError);
}

}  // namespace
}  // namespace kedge
