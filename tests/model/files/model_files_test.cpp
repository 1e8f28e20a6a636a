#include "kedge/model/files/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kedge/model/files/weight_files.h"
#include "kedge/model/score_head.h"

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_models.h"
#include "tests/support/weight_folder.h"

namespace kedge {
namespace {

using testing::batch_of;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::same_bits;
using testing::TempFolder;
using testing::tiny_model;
using testing::WeightFolder;

constexpr std::array kFamilies = {testing::kTinyLlama, testing::kTinyMistral, testing::kTinyQwen3, testing::kTinyGpt2};
constexpr const char* kWeights = "model.safetensors";

std::unique_ptr<Model> load(const Path& folder, const StorageOptions& storage = {}) { return load_model(folder, {.storage = storage}); }
std::unique_ptr<Model> load_score(const Path& folder) { return load_model(folder, {.storage = {}, .head = HeadKind::score}); }
std::unique_ptr<Model> with_new_head(const Path& folder, uint64_t seed) {
  return load_model(folder, {.storage = {}, .head = HeadKind::score, .new_labels = 2, .new_bias = true, .seed = seed});
}

// A folder of a tiny model whose weights are changed before they are loaded again.
class Folder {
 public:
  explicit Folder(const char* family, const HeadOptions& head = {}) : model(tiny_model(family, {}, head)) { save_model(*model, path()); }

  [[nodiscard]] const Path& path() const { return folder_.path(); }
  template <typename F>
  void change(F&& with) const {
    WeightFolder weights(path() / kWeights);
    with(weights);
    weights.write();
  }

  std::unique_ptr<Model> model;

 private:
  TempFolder folder_;
};

TEST(ModelFiles, AFolderComesBackBitForBit) {
  for (const char* family : kFamilies) {
    const Folder folder(family);
    const auto back = load(folder.path(), {.trainable = true});
    EXPECT_TRUE(same_bits(back->parameters().flat(), folder.model->parameters().flat())) << family;
    const TempFolder second;
    save_model(*back, second.path());
    EXPECT_EQ(read_text(second / kWeights), read_text(folder.path() / kWeights));
    EXPECT_EQ(read_text(second / "config.json"), read_text(folder.path() / "config.json"));
  }
}

TEST(ModelFiles, EverythingThatDoesNotFitIsInOneError) {
  const Folder folder(testing::kTinyLlama);
  folder.change([](WeightFolder& weights) {
    weights.remove("model.norm.weight");
    weights.remove("model.layers.1.mlp.up_proj.weight");
    weights.add("model.layers.2.input_layernorm.weight", at::ones({24}));
    weights.rename("model.layers.0.self_attn.k_proj.weight", "old");
    weights.add("model.layers.0.self_attn.k_proj.weight", at::zeros({24, 24}));
  });
  EXPECT_EQ(error_of([&] { return load(folder.path()); }),
            folder.path().string() +
                ": the weights are not those of the llama model in config.json\n"
                "  missing (2):\n"
                "    model.layers.1.mlp.up_proj.weight\n"
                "    model.norm.weight\n"
                "  unexpected (2):\n"
                "    model.layers.2.input_layernorm.weight\n"
                "    old\n"
                "  of another shape (1):\n"
                "    model.layers.0.self_attn.k_proj.weight: found [24, 24], expected [12, 24]");
}

TEST(ModelFiles, ALongListOfFaultsIsCut) {
  const Folder folder(testing::kTinyLlama);
  folder.change([](WeightFolder& weights) {
    for (int i = 0; i < 23; ++i) weights.add(str("extra.", i), at::ones({1}));
  });
  EXPECT_THAT(error_of([&] { return load(folder.path()); }), HasSubstr("\n    and 3 more"));
}

TEST(ModelFiles, MasksAndBareNamesAreNoFaults) {
  const Folder folder(testing::kTinyGpt2);
  folder.change([](WeightFolder& weights) {
    weights.add("transformer.h.0.attn.bias", at::ones({1, 1, 4, 4}));
    weights.add("transformer.h.0.attn.masked_bias", at::ones({1}));
    weights.rename("transformer.wpe.weight", "wpe.weight");
    weights.rename("transformer.h.1.mlp.c_fc.weight", "h.1.mlp.c_fc.weight");
  });
  EXPECT_TRUE(same_bits(load(folder.path())->parameters().flat(), folder.model->parameters().flat()));
}

TEST(ModelFiles, NanIsWarnedOfAndLoaded) {
  const Folder folder(testing::kTinyLlama);
  folder.change([](WeightFolder& weights) { weights.at("model.layers.1.mlp.down_proj.weight")[3][4].fill_(NAN); });
  ::testing::internal::CaptureStderr();
  const auto model = load(folder.path());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr(folder.path().string() + ": 1 tensors hold NaN or infinities, the first is model.layers.1.mlp.down_proj.weight"));
  EXPECT_TRUE(std::isnan(model->parameters().value(model->places().layers[1].down)[3][4].item<float>()));
}

TEST(ModelFiles, ATiedHeadMayBeStoredEitherWay) {
  const Folder only_embedding(testing::kTinyQwen3), only_head(testing::kTinyQwen3), both(testing::kTinyQwen3);
  only_head.change([](WeightFolder& weights) { weights.rename("model.embed_tokens.weight", "lm_head.weight"); });
  both.change([](WeightFolder& weights) { weights.add("lm_head.weight", weights.at("model.embed_tokens.weight")); });
  const Tensor& wanted = only_embedding.model->parameters().flat();
  for (const Folder* folder : {&only_embedding, &only_head, &both})
    EXPECT_TRUE(same_bits(load(folder->path())->parameters().flat(), wanted));
}

TEST(ModelFiles, AHeadThatIsTiedMayNotDifferFromTheEmbedding) {
  const Folder folder(testing::kTinyQwen3);
  folder.change([](WeightFolder& weights) { weights.add("lm_head.weight", weights.at("model.embed_tokens.weight") * 2); });
  EXPECT_EQ(error_of([&] { return load(folder.path()); }),
            (folder.path() / kWeights).string() +
                ": tensor lm_head.weight differs from model.embed_tokens.weight, but config.json ties the two; set tie_word_embeddings to "
                "false in config.json to keep both");
  EXPECT_TRUE(same_bits(with_new_head(folder.path(), 9)->hidden(batch_of({5, 9})), folder.model->hidden(batch_of({5, 9}))));
}

TEST(ModelFiles, AnUntiedHeadMustBeThere) {
  const Folder folder(testing::kTinyLlama);
  folder.change([](WeightFolder& weights) { weights.remove("lm_head.weight"); });
  EXPECT_THAT(error_of([&] { return load(folder.path()); }), HasSubstr("missing (1):\n    lm_head.weight"));
}

TEST(ModelFiles, ShardsLoadAgainEqual) {
  for (const char* family : kFamilies) {
    const auto model = tiny_model(family, {});
    const TempFolder folder;
    save_model(*model, folder.path());
    save_model(*model, folder.path(), {.dtype = {}, .max_shard_bytes = 4000, .companions = {}});
    EXPECT_FALSE(std::filesystem::exists(folder / kWeights));  // it would win over the index
    EXPECT_GT(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 5);
    EXPECT_TRUE(same_bits(load(folder.path())->parameters().flat(), model->parameters().flat())) << family;
    const Json index = Json::parse(read_text(folder / "model.safetensors.index.json"));
    EXPECT_EQ(index.find("metadata")->find("total_size")->as_integer(""), 4 * model->parameters().num_elements());
    save_model(*model, folder.path());
    EXPECT_FALSE(std::filesystem::exists(folder / "model.safetensors.index.json"));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 2) << "shards were left behind";
    EXPECT_TRUE(same_bits(load(folder.path())->parameters().flat(), model->parameters().flat()));
  }
}

TEST(ModelFiles, FilesOf16BitsAreRoundedOnceAndLoadIntoAnyType) {
  const auto model = tiny_model(testing::kTinyGpt2, {});
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    const TempFolder folder;
    save_model(*model, folder.path(), {.dtype = dtype, .companions = {}});
    EXPECT_EQ(load_model_config(folder.path()).dtype, dtype == at::kHalf ? "float16" : "bfloat16");
    const Tensor rounded = model->parameters().flat().to(dtype);
    EXPECT_TRUE(same_bits(load(folder.path())->parameters().flat(), rounded.to(at::kFloat)));
    const auto narrow = load(folder.path(), {.dtype = at::kBFloat16, .trainable = true});
    EXPECT_TRUE(same_bits(narrow->parameters().flat_master(), rounded.to(at::kFloat)));
    EXPECT_TRUE(same_bits(narrow->parameters().flat(), rounded.to(at::kFloat).to(at::kBFloat16)));
  }
}

TEST(ModelFiles, TheFileKeepsTheTypeOfItsConfigAndTheMasterWeights) {
  const Folder folder(testing::kTinyLlama);
  const auto model = load(folder.path(), {.dtype = at::kBFloat16, .trainable = true});
  const TempFolder second;
  save_model(*model, second.path());  // config.json says float32
  EXPECT_EQ(read_text(second / kWeights), read_text(folder.path() / kWeights));
}

TEST(ModelFiles, AScoreHeadIsSavedAndLoadedWithItsBias) {
  ::testing::internal::CaptureStderr();
  const Folder folder(testing::kTinyLlama, {HeadKind::score, 3, true});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the score head has a bias (score.bias), which transformers does not read"));
  const Json config = Json::parse(read_text(folder.path() / "config.json"));
  EXPECT_EQ(config.find("architectures")->dump(), R"(["LlamaForSequenceClassification"])");
  EXPECT_EQ(config.find("kedge_score_bias")->dump(), "true");
  const auto back = load_score(folder.path());
  EXPECT_EQ(back->head().num_labels, 3);
  EXPECT_TRUE(back->head().score_bias);
  EXPECT_TRUE(same_bits(back->parameters().flat(), folder.model->parameters().flat()));

  const Folder without(testing::kTinyLlama, {HeadKind::score, 1, false});
  EXPECT_EQ(Json::parse(read_text(without.path() / "config.json")).find("kedge_score_bias"), nullptr);
  EXPECT_FALSE(load_score(without.path())->head().score_bias);
}

TEST(ModelFiles, AScoreModelFromALanguageModelHasAFreshHead) {
  for (const char* family : {testing::kTinyLlama, testing::kTinyQwen3, testing::kTinyGpt2}) {
    const Folder folder(family);
    const auto model = with_new_head(folder.path(), 9), again = with_new_head(folder.path(), 9);
    EXPECT_EQ(model->head().num_labels, 2);
    EXPECT_TRUE(same_bits(model->parameters().flat(), again->parameters().flat()));
    const auto other = with_new_head(folder.path(), 10);
    EXPECT_FALSE(same_bits(model->parameters().value(model->places().score), other->parameters().value(other->places().score)));
    const PackedBatch batch = batch_of({5, 9});
    EXPECT_TRUE(same_bits(model->hidden(batch), folder.model->hidden(batch)));
    const TempFolder second;
    save_model(*model, second.path());
    EXPECT_TRUE(same_bits(load_score(second.path())->parameters().flat(), model->parameters().flat()));
  }
}

TEST(ModelFiles, ACriticStartsFromARewardModelWithTheSameHead) {
  const Folder reward(testing::kTinyLlama, {HeadKind::score, 1, true});
  const auto critic = load_model(reward.path(), {.storage = {.trainable = true}, .head = HeadKind::score, .new_labels = 4});
  EXPECT_EQ(critic->head().num_labels, 1);  // the stored head wins over a new one
  const PackedBatch batch = batch_of({5, 9});
  const Tensor values = token_scores(*critic, batch);
  EXPECT_EQ(values.sizes(), at::IntArrayRef({14, 1}));
  EXPECT_LT(testing::relative_error(values.index_select(0, testing::longs({4, 13})), row_scores(*reward.model, batch, Pooling::last)),
            1e-6);
}

TEST(ModelFiles, TheWrongKindOfFolderIsRefused) {
  const Folder language(testing::kTinyLlama), score(testing::kTinyLlama, {HeadKind::score, 2, false});
  EXPECT_EQ(error_of([&] { return load(score.path()); }),
            score.path().string() + ": a score model (2 labels) where a language model is expected");
  EXPECT_EQ(error_of([&] { return load_score(language.path()); }),
            language.path().string() + ": no score head (tensor score.weight) where a reward model or critic is expected");
}

TEST(ModelFiles, CompanionsComeAlong) {
  const TempFolder from, to;
  from.file("tokenizer.json", "{}");
  from.file("generation_config.json", "{\"a\": 1}");
  const auto model = tiny_model(testing::kTinyLlama, {});
  save_model(*model, to.path() / "new" / "folder", {.dtype = {}, .companions = from.path()});
  EXPECT_EQ(read_text(to.path() / "new" / "folder" / "generation_config.json"), "{\"a\": 1}");
  EXPECT_TRUE(std::filesystem::exists(to.path() / "new" / "folder" / "tokenizer.json"));
}

TEST(ModelFiles, ARealFolderLoads) {
  KEDGE_NEEDS_ASSET("models/tinystories-656k");
  const auto model = load(testing::asset("models/tinystories-656k"));
  // Embedding 2048 x 128; two layers of 128 x (128 + 64 + 64 + 128) + 3 x 128 x 384 and two norms; the last norm.
  EXPECT_EQ(model->parameters().num_elements(), 2048 * 128 + 2 * (128 * 384 + 3 * 128 * 384 + 2 * 128) + 128);
  const TempFolder folder;
  save_model(*model, folder.path());
  EXPECT_TRUE(same_bits(load(folder.path())->parameters().flat(), model->parameters().flat()));
}

}  // namespace
}  // namespace kedge
