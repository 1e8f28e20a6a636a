#include "kedge/model/spec/adapter_config.h"

#include <gtest/gtest.h>

#include "kedge/core/json.h"
#include "kedge/model/files/safetensors.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::TempFolder;

// An adapter's folder as PEFT writes it, with `more` members in its configuration.
class AdapterFiles {
 public:
  explicit AdapterFiles(const std::string& more = "") {
    folder_.file(kAdapterConfigFile, R"({"peft_type": "LORA", "r": 4, "lora_alpha": 6, "lora_dropout": 0.25)" + more + "}");
  }
  void add_head(const std::string& prefix, std::vector<int64_t> shape) const {
    const size_t num_bytes = shape.size() == 2 ? 4 * static_cast<size_t>(shape[0] * shape[1]) : 4 * static_cast<size_t>(shape[0]);
    SafetensorsWriter writer(folder_ / kAdapterWeightsFile, {{prefix + "score.weight", WeightType::f32, std::move(shape)}});
    writer.write(std::string(num_bytes, '\0'));
    writer.finish();
  }
  [[nodiscard]] const Path& path() const { return folder_.path(); }
  [[nodiscard]] std::string config() const { return (path() / kAdapterConfigFile).string(); }
  [[nodiscard]] std::string weights() const { return (path() / kAdapterWeightsFile).string(); }

 private:
  TempFolder folder_;
};

TEST(AdapterConfig, TellsRankScaleAndDropout) {
  const AdapterFiles files;
  const LoraConfig config = load_adapter_config(files.path());
  EXPECT_EQ(config.adapter_dim, 4);
  EXPECT_EQ(config.scale(), 1.5);
  EXPECT_EQ(config.adapter_dropout, 0.25);
  EXPECT_EQ(load_adapter_config(AdapterFiles(R"(, "use_rslora": true)").path()).scale(), 3);  // 6 * sqrt(4) / 4
}

TEST(AdapterConfig, WhatIsNotSupportedIsNamed) {
  const AdapterFiles files(R"(, "use_dora": true)");
  EXPECT_EQ(error_of([&] { return load_adapter_config(files.path()); }), files.config() + ": use_dora: true is not supported");
}

TEST(AdapterConfig, AnAdapterThatChangesItsBaseIsRefused) {
  for (const char* start : {"pissa", "pissa_niter_4", "OLoRA", "corda", "loftq", "lora_ga"}) {
    const AdapterFiles files(kedge::str(R"(, "init_lora_weights": ")", start, "\""));
    EXPECT_EQ(
        error_of([&] { return load_adapter_config(files.path()); }),
        kedge::str(files.config(), ": init_lora_weights: \"", start,
                   "\" is not supported: such an adapter belongs to a base whose weights PEFT changes when it loads it; merge the two "
                   "with PEFT, or save the adapter again with save_pretrained's path_initial_model_for_weight_conversion"));
  }
  for (const char* start : {"true", "false", "\"gaussian\"", "\"eva\"", "\"orthogonal\"", "\"mica\"", "null"})
    EXPECT_EQ(load_adapter_config(AdapterFiles(kedge::str(R"(, "init_lora_weights": )", start)).path()).adapter_dim, 4);
}

TEST(AdapterConfig, AHeadIsFoundWithPeftsPrefixAndWithout) {
  EXPECT_FALSE(load_adapter_head(AdapterFiles().path()).has_value());
  for (const char* prefix : {"base_model.model.", ""}) {
    const AdapterFiles files(R"(, "modules_to_save": ["score"])");
    files.add_head(prefix, {3, 2});
    EXPECT_TRUE(saves_head(files.path()));
    const auto head = load_adapter_head(files.path());
    ASSERT_TRUE(head.has_value());
    EXPECT_EQ(head->kind, HeadKind::score);
    EXPECT_EQ(head->num_labels, 3);
    EXPECT_FALSE(head->score_bias);
  }
}

TEST(AdapterConfig, AHeadThatCannotBeOneIsNamed) {
  const AdapterFiles files(R"(, "modules_to_save": ["score"])");
  files.add_head("base_model.model.", {6});
  EXPECT_EQ(error_of([&] { return load_adapter_head(files.path()); }),
            files.weights() + ": tensor base_model.model.score.weight: found [6], expected [labels, hidden]");
}

}  // namespace
}  // namespace kedge
