#include "kedge/model/files/weight_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/model/spec/shapes.h"

#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TempFolder;

ModelConfig small_config(bool tied = false, int64_t num_labels = 0) {
  const Json json = shape_json({.hidden_size = 4,
                                .num_layers = 1,
                                .num_heads = 2,
                                .num_kv_heads = 1,
                                .mlp_size = 6,
                                .vocab_size = 5,
                                .max_positions = 8,
                                .tied = tied});
  ModelConfig config = parse_model_config(json, "config.json");
  config.num_labels = num_labels;
  return config;
}

std::vector<TensorEntry> entries_of(const ModelConfig& config, const HeadOptions& head = {}) {
  std::vector<TensorEntry> entries;
  for (const WeightSlice& slice : parameter_layout(config, make_parameters(config, head)))
    entries.push_back({.name = slice.name, .type = WeightType::bf16, .shape = slice.shape});
  return entries;
}

// A folder with zeros under these names.
WeightFiles write_folder(const TempFolder& folder, const std::vector<TensorEntry>& entries) {
  SafetensorsWriter writer(folder / "model.safetensors", entries);
  for (const TensorEntry& entry : entries) {
    size_t bytes = entry.type ? bytes_of(*entry.type) : 1;
    for (const int64_t extent : entry.shape) bytes *= static_cast<size_t>(extent);
    writer.write(std::string(bytes, '\0'));
  }
  writer.finish();
  return WeightFiles(folder.path());
}

WeightCheck checked(const WeightFiles& files, const ModelConfig& config, const HeadOptions& head = {}, bool fresh_head = false) {
  return check_weights(files, parameter_layout(config, make_parameters(config, head)), {.head = head.kind, .fresh_head = fresh_head});
}

TEST(WeightCheck, AWholeFolderFits) {
  const TempFolder folder;
  const ModelConfig config = small_config();
  const WeightCheck found = checked(write_folder(folder, entries_of(config)), config);
  EXPECT_TRUE(found.fits());
  EXPECT_EQ(found.text("x", config), "");
  ASSERT_EQ(found.found.size(), 12U);
  EXPECT_EQ(found.found.front().name, "model.embed_tokens.weight");
  EXPECT_EQ(found.found.back().name, "lm_head.weight");
}

TEST(WeightCheck, EverythingThatDoesNotFitIsNamedAtOnce) {
  const TempFolder folder;
  const ModelConfig config = small_config();
  std::vector<TensorEntry> entries = entries_of(config);
  entries[0].shape = {7, 4};                                    // the embedding
  entries[1].type = std::nullopt, entries[1].type_name = "I8";  // the first norm
  entries[2].name = "model.layers.9.self_attn.q_proj.weight";   // of layer 0
  const WeightFiles files = write_folder(folder, entries);
  const WeightCheck found = checked(files, config);
  EXPECT_FALSE(found.fits());
  EXPECT_EQ(found.text("DIR", config),
            "DIR: the weights are not those of the llama model in config.json\n"
            "  missing (1):\n    model.layers.0.self_attn.q_proj.weight\n"
            "  unexpected (1):\n    model.layers.9.self_attn.q_proj.weight\n"
            "  of another shape (1):\n    model.embed_tokens.weight: found [7, 4], expected [5, 4]\n"
            "  of a type that is not supported (1):\n    model.layers.0.input_layernorm.weight: found I8, expected F32, BF16 or F16");
}

TEST(WeightCheck, LongListsAreCutShort) {
  const TempFolder folder;
  const ModelConfig config = small_config();
  std::vector<TensorEntry> entries = entries_of(config);
  for (int i = 0; i < 25; ++i) entries.push_back({.name = "extra." + std::to_string(10 + i), .type = WeightType::f32, .shape = {1}});
  const std::string text = checked(write_folder(folder, entries), config).text("DIR", config);
  EXPECT_THAT(text, ::testing::EndsWith("\n    extra.29\n    and 5 more"));
  EXPECT_THAT(text, ::testing::HasSubstr("unexpected (25):"));
}

TEST(WeightCheck, OtherNamesAndTensorsWithoutWeightsAreFine) {
  const TempFolder folder;
  const ModelConfig config = small_config(/*tied=*/true);
  std::vector<TensorEntry> entries = entries_of(config);
  entries[0].name = "lm_head.weight";  // tied: one of both names
  for (size_t i = 1; i < entries.size(); ++i) entries[i].name = entries[i].name.substr(std::string("model.").size());
  entries.push_back({.name = "layers.0.self_attn.rotary_emb.inv_freq", .type = WeightType::f32, .shape = {1}});
  const WeightCheck found = checked(write_folder(folder, entries), config);
  EXPECT_EQ(found.text("DIR", config), "");
  EXPECT_EQ(found.found.front().name, "lm_head.weight");
  EXPECT_EQ(found.found.front().slice.name, "model.embed_tokens.weight");
}

TEST(WeightCheck, TheHeadIsTheOneOfConfigJson) {
  const TempFolder folder, scoring, plain;
  const HeadOptions with_bias{HeadKind::score, 3, true};
  const ModelConfig language = small_config(), score = small_config(false, 3);
  const WeightFiles files = write_folder(folder, entries_of(language));
  EXPECT_EQ(stored_head(language, files).kind, HeadKind::language);
  EXPECT_FALSE(has_score_head(language, files));

  const WeightFiles scores = write_folder(scoring, entries_of(score, with_bias));
  EXPECT_TRUE(has_score_head(score, scores));
  const HeadOptions found = stored_head(score, scores);
  EXPECT_EQ(found.kind, HeadKind::score);
  EXPECT_EQ(found.num_labels, 3);
  EXPECT_TRUE(found.score_bias);
  EXPECT_TRUE(checked(scores, score, found).fits());

  const WeightFiles no_bias = write_folder(plain, entries_of(score, {HeadKind::score, 3, false}));
  EXPECT_FALSE(stored_head(score, no_bias).score_bias);
  EXPECT_FALSE(has_score_head(language, no_bias));
}

TEST(WeightCheck, AScoreModelMayStartFromALanguageModel) {
  const TempFolder folder;
  const ModelConfig config = small_config();
  const WeightFiles files = write_folder(folder, entries_of(config));
  const HeadOptions head{HeadKind::score, 1, true};
  EXPECT_THAT(checked(files, config, head).missing, ElementsAre("score.weight", "score.bias"));
  const WeightCheck fresh = checked(files, config, head, /*fresh_head=*/true);
  EXPECT_TRUE(fresh.fits()) << fresh.text("DIR", config);
  EXPECT_THAT(fresh.unexpected, IsEmpty());
  EXPECT_EQ(fresh.found.back().name, "model.norm.weight");
}

}  // namespace
}  // namespace kedge
