#include "kedge/model/files/save_plan.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::TempFolder;

SavePlan plan_of(const ModelConfig& config, const SaveOptions& options) { return plan_save(config, make_parameters(config, {}), options); }

TEST(SavePlan, ASmallModelIsOneFileWithoutAnIndex) {
  const ModelConfig config = testing::tiny_config(testing::kTinyLlama);
  const SavePlan plan = plan_of(config, {.dtype = at::kBFloat16});
  ASSERT_EQ(plan.files.size(), 1U);
  EXPECT_EQ(plan.files[0].name, "model.safetensors");
  EXPECT_EQ(plan.files[0].slices.size(), parameter_layout(config, make_parameters(config, {})).size());
  EXPECT_EQ(plan.type, WeightType::bf16);
  EXPECT_FALSE(plan.index);
}

TEST(SavePlan, TheIndexNamesTheFileOfEveryTensor) {
  const SavePlan plan = plan_of(testing::tiny_config(testing::kTinyLlama), {.dtype = at::kFloat, .max_shard_bytes = 10000});
  ASSERT_GT(plan.files.size(), 2U);
  const Json index = Json::parse(plan.index.value(), "index");
  int64_t total = 0;
  for (const SavedFile& file : plan.files) {
    int64_t bytes = 0;
    ASSERT_EQ(file.slices.size(), file.entries.size());
    for (size_t i = 0; i < file.slices.size(); ++i) {
      EXPECT_EQ(file.entries[i].name, file.slices[i].name);
      EXPECT_EQ(index.at("weight_map", "index").at(file.slices[i].name, "map"), Json(file.name));
      int64_t size = 4;
      for (const int64_t extent : file.slices[i].shape) size *= extent;
      bytes += size;
    }
    EXPECT_TRUE(bytes <= 10000 || file.slices.size() == 1) << file.name;
    total += bytes;
  }
  EXPECT_EQ(plan.files[1].name.substr(0, 12), "model-00002-");
  EXPECT_EQ(index.at("metadata", "index").at("total_size", "metadata"), Json(total));
}

TEST(SavePlan, ConfigNamesTheTypeOfTheFile) {
  const TempFolder temp;
  const ModelConfig config = testing::tiny_config(testing::kTinyLlama);
  const ModelParameters places = make_parameters(config, {HeadKind::score, 2, true});
  finish_model_folder({config, {HeadKind::score, 2, true}, places, WeightType::bf16}, temp.path(), {});
  const Json json = Json::parse(read_text(temp / "config.json"), "config.json");
  EXPECT_EQ(parse_model_config(json, "config.json").dtype, "bfloat16");
  EXPECT_EQ(parse_model_config(json, "config.json").num_labels, 2);
  EXPECT_EQ(json.at("kedge_score_bias", "config.json"), Json(true));
}

}  // namespace
}  // namespace kedge
