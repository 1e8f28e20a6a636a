#include "kedge/model/files/peft_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/model_logits.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_models.h"
#include "tests/support/weight_folder.h"

namespace kedge {
namespace {

using testing::batch_of;
using testing::error_of;
using testing::model_logits;
using testing::same_bits;
using testing::TempFolder;
using testing::tiny_model;
using testing::WeightFolder;

constexpr const char* kConfig = "adapter_config.json";
constexpr const char* kAdapterFile = "adapter_model.safetensors";

std::unique_ptr<Model> adapted(const char* family, const std::vector<std::string>& targets,
                               std::optional<std::vector<int64_t>> layers = {}) {
  auto model = tiny_model(family, {});
  LoraConfig lora;
  lora.adapter_dim = 4;
  lora.alpha = 8;
  lora.adapter_dropout = 0.25;
  lora.target_modules = targets;
  lora.layer_selection = std::move(layers);
  model->add_adapters(lora, true);
  testing::scatter_weights(model->adapters()->parameters(), 50, 0.2);
  return model;
}

// An adapter on q_proj and down_proj of the tiny llama, whose files can be changed.
class AdapterFolder {
 public:
  AdapterFolder() { save_adapter(*model, folder_.path(), "base"); }

  [[nodiscard]] const Path& path() const { return folder_.path(); }
  [[nodiscard]] std::string config() const { return (path() / kConfig).string(); }
  void set(const char* key, const Json& value) const {
    Json json = Json::parse(read_text(path() / kConfig));
    json.set(key, value);
    write_atomic(path() / kConfig, json.dump());
  }
  [[nodiscard]] std::string fault() const {
    return error_of([&] {
      const auto base = tiny_model(testing::kTinyLlama, {});
      load_adapter(*base, path(), false);
      return 0;
    });
  }

  std::unique_ptr<Model> model = adapted(testing::kTinyLlama, {"q_proj", "down_proj"});

 private:
  TempFolder folder_;
};

TEST(PeftFiles, AdaptersComeBackBitForBit) {
  for (const char* family : {testing::kTinyLlama, testing::kTinyQwen3, testing::kTinyGpt2}) {
    const auto model = adapted(family, {"all"});
    const TempFolder folder;
    save_adapter(*model, folder.path(), "base");
    const auto back = tiny_model(family, {});
    load_adapter(*back, folder.path(), true);
    EXPECT_TRUE(same_bits(back->adapters()->parameters().flat(), model->adapters()->parameters().flat()));
    EXPECT_EQ(back->adapters()->config().scale(), 2);
    EXPECT_EQ(back->adapters()->config().adapter_dropout, 0.25);
    EXPECT_TRUE(back->adapters()->parameters().options().trainable);
    const PackedBatch batch = batch_of({5, 9});
    EXPECT_TRUE(same_bits(model_logits(*back, batch), model_logits(*model, batch)));
  }
}

TEST(PeftFiles, TheConfigurationIsPefts) {
  const TempFolder folder;
  save_adapter(*adapted(testing::kTinyGpt2, {"mlp"}, std::vector<int64_t>{2}), folder.path(), "org/base");
  const Json json = Json::parse(read_text(folder / kConfig));
  const auto text = [&](const char* key) { return json.find(key)->dump(); };
  EXPECT_EQ(text("peft_type"), "\"LORA\"");
  EXPECT_EQ(text("task_type"), "\"CAUSAL_LM\"");
  EXPECT_EQ(text("base_model_name_or_path"), "\"org/base\"");
  EXPECT_EQ(text("r"), "4");
  EXPECT_EQ(json.find("lora_alpha")->as_number(""), 8);
  EXPECT_EQ(text("lora_dropout"), "0.25");
  EXPECT_EQ(text("target_modules"), R"(["c_fc", "mlp.c_proj"])");
  EXPECT_EQ(text("layers_to_transform"), "[1]");
  EXPECT_EQ(text("fan_in_fan_out"), "true");
  EXPECT_EQ(text("bias"), "\"none\"");
  const WeightFolder weights(folder / kAdapterFile);
  EXPECT_EQ(weights.at("base_model.model.transformer.h.1.mlp.c_fc.lora_A.weight").sizes(), at::IntArrayRef({4, 24}));
  EXPECT_EQ(weights.at("base_model.model.transformer.h.1.mlp.c_fc.lora_B.weight").sizes(), at::IntArrayRef({96, 4}));
}

TEST(PeftFiles, AdaptersInEveryLayerNameNoLayers) {
  const AdapterFolder folder;
  const Json json = Json::parse(read_text(folder.path() / kConfig));
  EXPECT_TRUE(json.find("layers_to_transform")->is_null());
  EXPECT_EQ(json.find("target_modules")->dump(), R"(["down_proj", "q_proj"])");
  EXPECT_EQ(json.find("fan_in_fan_out")->dump(), "false");
}

TEST(PeftFiles, AdaptersHereAndThereAreSavedUnderTheirWholeNames) {
  const auto model = tiny_model(testing::kTinyLlama, {});
  std::vector<LinearSlice> slices;
  for (const LinearSlice& slice : linear_slices(model->config(), model->places()))
    if (slice.module == "model.layers.0.self_attn.q_proj" || slice.module == "model.layers.1.mlp.up_proj") slices.push_back(slice);
  model->add_adapters(LoraConfig{}, slices, true);
  const TempFolder folder;
  save_adapter(*model, folder.path(), "base");
  const Json json = Json::parse(read_text(folder / kConfig));
  EXPECT_EQ(json.find("target_modules")->dump(), R"(["model.layers.0.self_attn.q_proj", "model.layers.1.mlp.up_proj"])");
  EXPECT_TRUE(json.find("layers_to_transform")->is_null());
}

TEST(PeftFiles, RankStabilisedAdaptersScaleByTheRootOfTheRank) {
  const AdapterFolder folder;
  folder.set("use_rslora", true);
  const auto base = tiny_model(testing::kTinyLlama, {});
  load_adapter(*base, folder.path(), false);
  EXPECT_NEAR(base->adapters()->config().scale(), 8 / std::sqrt(4.0), 1e-12);
  EXPECT_FALSE(base->adapters()->parameters().options().trainable);
}

TEST(PeftFiles, WhatIsNotSupportedIsNamed) {
  for (const auto& [key, value, text] :
       std::vector<std::tuple<const char*, Json, std::string>>{{"use_dora", true, "true"},
                                                               {"rank_pattern", Json::parse(R"({"q_proj": 8})"), R"({"q_proj": 8})"},
                                                               {"alpha_pattern", Json::parse(R"({"q_proj": 8})"), R"({"q_proj": 8})"},
                                                               {"trainable_token_indices", Json::parse("[3]"), "[3]"},
                                                               {"layer_replication", Json::parse("[[0, 1]]"), "[[0, 1]]"},
                                                               {"lora_bias", true, "true"}}) {
    const AdapterFolder folder;
    folder.set(key, value);
    EXPECT_EQ(folder.fault(), str(folder.config(), ": ", key, ": ", text, " is not supported"));
  }
  const AdapterFolder module;
  module.set("modules_to_save", Json::parse(R"(["score", "lm_head"])"));
  EXPECT_EQ(module.fault(), module.config() + ": modules_to_save: \"lm_head\" is not supported, only \"score\" is");
  const AdapterFolder bias;
  bias.set("bias", "all");
  EXPECT_EQ(bias.fault(), bias.config() + ": bias: \"all\" is not supported, only \"none\" is");
  const AdapterFolder kind;
  kind.set("peft_type", "IA3");
  EXPECT_EQ(kind.fault(), kind.config() + ": peft_type: \"IA3\" is not supported, only LORA is");
}

TEST(PeftFiles, KeysThatAreSetToNothingAreFine) {
  const AdapterFolder folder;
  for (const char* key : {"rank_pattern", "alpha_pattern"}) folder.set(key, Json(Json::Object{}));
  for (const char* key : {"modules_to_save", "layer_replication", "trainable_token_indices"}) folder.set(key, Json());
  folder.set("use_dora", false);
  const auto base = tiny_model(testing::kTinyLlama, {});
  load_adapter(*base, folder.path(), false);
  EXPECT_TRUE(same_bits(base->adapters()->parameters().flat(), folder.model->adapters()->parameters().flat()));
}

TEST(PeftFiles, NumbersThatMakeNoSenseAreNamed) {
  const AdapterFolder rank;
  rank.set("r", 0);
  EXPECT_EQ(rank.fault(), rank.config() + ": r: 0 is not a rank");
  for (const double dropout : {1.0, -0.5}) {
    const AdapterFolder folder;
    folder.set("lora_dropout", dropout);
    EXPECT_EQ(folder.fault(), str(folder.config(), ": lora_dropout: ", dropout, " is not in [0, 1)"));
  }
  const AdapterFolder alpha;
  alpha.set("lora_alpha", "big");
  EXPECT_EQ(alpha.fault(), alpha.config() + ": lora_alpha: expected a number, found \"big\"");
}

TEST(PeftFiles, TensorsThatDoNotFitAreNamed) {
  const std::string prefix = "base_model.model.model.layers.0.self_attn.q_proj.";
  const auto fault = [](const AdapterFolder& folder, auto&& change) {
    WeightFolder weights(folder.path() / kAdapterFile);
    change(weights);
    weights.write();
    return folder.fault();
  };
  const AdapterFolder shape, module, name, missing, rank;
  const auto file = [](const AdapterFolder& folder) { return (folder.path() / kAdapterFile).string(); };
  EXPECT_EQ(fault(shape,
                  [&](WeightFolder& weights) {
                    weights.remove(prefix + "lora_A.weight");
                    weights.add(prefix + "lora_A.weight", at::zeros({4, 25}));
                  }),
            file(shape) + ": tensor " + prefix + "lora_A.weight: found [4, 25], expected [4, 24]");
  EXPECT_EQ(fault(module,
                  [&](WeightFolder& weights) {
                    weights.rename(prefix + "lora_A.weight", "base_model.model.model.layers.2.mlp.x.lora_A.weight");
                  }),
            file(module) + ": model.layers.2.mlp.x is not a linear layer of this llama model of 2 layers (1 such)");
  EXPECT_EQ(fault(name, [&](WeightFolder& weights) { weights.rename(prefix + "lora_A.weight", prefix + "lora_magnitude_vector"); }),
            file(name) + ": tensor " + prefix + "lora_magnitude_vector: expected names that end in .lora_A.weight or .lora_B.weight");
  EXPECT_EQ(fault(missing, [&](WeightFolder& weights) { weights.remove(prefix + "lora_B.weight"); }),
            file(missing) + ": tensor " + prefix + "lora_B.weight is missing");
  rank.set("r", 8);
  EXPECT_EQ(rank.fault(), file(rank) + ": tensor " + prefix + "lora_A.weight: found [4, 24], expected [8, 24]");
}

// Adapters with a score head of two labels, saved beside them.
class ScoreFolder {
 public:
  explicit ScoreFolder(bool bias) : model(base(bias, 2)) {
    model->add_adapters(LoraConfig{}, true);
    testing::scatter_weights(model->adapters()->parameters(), 50, 0.2);
    save_adapter(*model, folder_.path(), "base");
  }

  static std::unique_ptr<Model> base(bool bias, int64_t num_labels) {
    return tiny_model(testing::kTinyLlama, {}, {HeadKind::score, num_labels, bias});
  }
  [[nodiscard]] const Path& path() const { return folder_.path(); }
  [[nodiscard]] std::string fault(Model& on) const {
    return error_of([&] {
      load_adapter(on, path(), false);
      return 0;
    });
  }
  void change_weights(auto&& change) const {
    WeightFolder weights(path() / kAdapterFile);
    change(weights);
    weights.write();
  }
  void set_modules(const Json& modules) const {
    Json json = Json::parse(read_text(path() / kConfig));
    json.set("modules_to_save", modules);
    write_atomic(path() / kConfig, json.dump());
  }

  std::unique_ptr<Model> model;

 private:
  TempFolder folder_;
};

TEST(PeftFiles, ATrainedScoreHeadComesBackBitForBit) {
  for (const bool bias : {false, true}) {
    const ScoreFolder folder(bias);
    const Json json = Json::parse(read_text(folder.path() / kConfig));
    EXPECT_EQ(json.find("modules_to_save")->dump(), R"(["score"])");
    EXPECT_EQ(json.find("task_type")->dump(), R"("SEQ_CLS")");
    const WeightFolder weights(folder.path() / kAdapterFile);
    EXPECT_TRUE(same_bits(weights.at("base_model.model.score.weight"), folder.model->score_head().weight));
    const auto head = load_adapter_head(folder.path());
    ASSERT_TRUE(head.has_value());
    EXPECT_EQ(head->num_labels, 2);
    EXPECT_EQ(head->score_bias, bias);
    const auto back = ScoreFolder::base(bias, 2);
    load_adapter(*back, folder.path(), true);
    EXPECT_TRUE(same_bits(back->adapters()->parameters().flat(), folder.model->adapters()->parameters().flat()));
  }
}

TEST(PeftFiles, AnAdapterWithoutAHeadLeavesTheBasesOnAScoreModel) {
  const AdapterFolder folder;
  EXPECT_FALSE(load_adapter_head(folder.path()).has_value());
  const auto base = ScoreFolder::base(true, 2);
  load_adapter(*base, folder.path(), true);
  const ScoreView head = base->score_head();
  EXPECT_TRUE(same_bits(head.weight, base->parameters().value(base->places().score)));
  EXPECT_TRUE(same_bits(head.bias, base->parameters().value(base->places().score_bias)));
}

// As PEFT writes it: "classifier" beside "score", and no bias because transformers' head has none.
TEST(PeftFiles, AHeadWithoutItsBiasKeepsTheBasesBias) {
  const ScoreFolder folder(false);
  folder.set_modules(Json::parse(R"(["classifier", "score"])"));
  const auto base = ScoreFolder::base(true, 2);
  load_adapter(*base, folder.path(), false);
  EXPECT_TRUE(same_bits(base->score_head().weight, folder.model->score_head().weight));
  EXPECT_TRUE(same_bits(base->score_head().bias, base->parameters().value(base->places().score_bias)));
}

TEST(PeftFiles, ABaseWithoutAScoreHeadStartsWithTheAdaptersShape) {
  LoadOptions options;
  start_head_of_adapter(options, AdapterFolder().path());
  EXPECT_EQ(options.head, HeadKind::language);
  start_head_of_adapter(options, ScoreFolder(true).path());
  EXPECT_EQ(options.head, HeadKind::score);
  EXPECT_EQ(options.new_labels, 2);
  EXPECT_TRUE(options.new_bias);
}

TEST(PeftFiles, HeadsThatDoNotFitAreNamed) {
  const std::string tensor = ": tensor base_model.model.score.";
  const ScoreFolder plain(false), with_bias(true), missing(false), unlisted(false);
  const auto file = [](const ScoreFolder& folder) { return (folder.path() / kAdapterFile).string(); };
  EXPECT_EQ(plain.fault(*ScoreFolder::base(false, 3)), file(plain) + tensor + "weight: found [2, 24], expected [3, 24]");
  EXPECT_EQ(plain.fault(*tiny_model(testing::kTinyLlama, {})),
            plain.path().string() + ": an adapter with a score head (modules_to_save) on a language model");
  EXPECT_EQ(with_bias.fault(*ScoreFolder::base(false, 2)), file(with_bias) + tensor + "bias: the model's score head has no bias");
  missing.change_weights([](WeightFolder& weights) { weights.remove("base_model.model.score.weight"); });
  EXPECT_EQ(missing.fault(*ScoreFolder::base(false, 2)), file(missing) + tensor + "weight is missing");
  EXPECT_EQ(error_of([&] { return load_adapter_head(missing.path()); }), file(missing) + tensor + "weight is missing");
  unlisted.set_modules({});
  EXPECT_EQ(unlisted.fault(*ScoreFolder::base(false, 2)),
            file(unlisted) + tensor + "weight: expected names that end in .lora_A.weight or .lora_B.weight");
}

TEST(PeftFiles, AnAdapterThatDoesNotLoadLeavesTheModelAsItWas) {
  const AdapterFolder folder;
  folder.set("r", 8);
  const auto base = tiny_model(testing::kTinyLlama, {});
  const PackedBatch batch = batch_of({5});
  const Tensor before = model_logits(*base, batch);
  EXPECT_THROW(load_adapter(*base, folder.path(), false), UsageError);
  EXPECT_TRUE(same_bits(model_logits(*base, batch), before));
}

TEST(PeftFiles, ARealAdapterLoadsOntoItsShape) {
  KEDGE_NEEDS_ASSET("models/trl-kto-gpt2-lora");
  Model model(
      testing::tiny_config(R"({"model_type": "gpt2", "vocab_size": 31, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 16})"),
      {}, {});
  Tensor weights = model.parameters().flat();
  weights.normal_(0, 0.05);  // faster than our own draws; any numbers will do
  const PackedBatch batch = batch_of({5, 9});
  const Tensor base = model_logits(model, batch);
  load_adapter(model, testing::asset("models/trl-kto-gpt2-lora"), false);
  EXPECT_EQ(model.adapters()->slices().size(), 12U);
  EXPECT_EQ(model.adapters()->config().adapter_dim, 16);
  EXPECT_EQ(model.adapters()->config().scale(), 1);
  EXPECT_EQ(model.adapters()->config().adapter_dropout, 0.05);
  EXPECT_GT(testing::largest_difference(model_logits(model, batch), base), 1e-4);
}

}  // namespace
}  // namespace kedge
