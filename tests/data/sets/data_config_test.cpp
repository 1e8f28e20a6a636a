#include "kedge/data/sets/data_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/config/config.h"
#include "kedge/data/sets/sft_config.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::TempFolder;

// A model section as the trainers have it.
template <typename Data>
struct Model {
  int64_t encoder_seq_length = 2048;
  Data data;
  void fields(auto&& field) {
    field("encoder_seq_length", encoder_seq_length, "context");
    field("data", data, "data");
  }
};

template <typename Data>
std::vector<std::string> load(Model<Data>& model, const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return load_section(describe(model), {"f.yaml", yaml}, overrides);
}

TEST(DataConfig, SequencesAreAsLongAsTheContextUnlessSaid) {
  Model<DataConfig> model;
  EXPECT_TRUE(load(model, "").empty());
  EXPECT_EQ(model.data.seq_length, 2048);
  EXPECT_TRUE(load(model, "", {"data.seq_length=100"}).empty());
  EXPECT_EQ(model.data.seq_length, 100);
}

TEST(DataConfig, TakesTheReferencesKeys) {
  Model<DataConfig> model;
  const auto warnings = load(model, "",
                             {"data.data_prefix={train: [a], validation: [b], test: [c]}", "data.num_workers=2", "data.apply_ftfy=False",
                              "data.dataloader_type=single", "data.fields.prompt=question", "data.fields.roles={bot: assistant}"});
  EXPECT_EQ(warnings.size(), 2U);
  EXPECT_EQ(model.data.data_prefix.at("train", "").dump(), "[\"a\"]");
  EXPECT_EQ(model.data.names.prompt, "question");
  EXPECT_EQ(model.data.names.roles.at("bot"), "assistant");
  EXPECT_NE(error_of([&] { return load(model, "", {"data.apply_ftfy=True"}); }).find("repair the text before"), std::string::npos);
}

TEST(DataConfig, OpensItsSplits) {
  const TempFolder folder;
  DataConfig config;
  const std::string file = folder.file("a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n").string();
  config.data_prefix = Json::Array{file};
  config.splits_string = "1,1,0";
  const auto splits = open_data(config, "model.data");
  EXPECT_EQ(splits.at("train").size(), 1);
  EXPECT_EQ(splits.at("validation").row(0).text("text"), "b");
  config.data_impl = "mmap";
  EXPECT_EQ(error_of([&] { return open_data(config, "model.data"); }),
            "model.data.data_impl: \"mmap\" is not supported; expected jsonl: text, an object a line, which needs no preparation");
}

TEST(SftDataConfig, ValidationFollowsTraining) {
  Model<SftDataConfig> model;
  EXPECT_TRUE(load(model, "", {"data.train_ds.global_batch_size=8", "data.train_ds.add_eos=False", "data.validation_ds.micro_batch_size=4"})
                  .empty());
  EXPECT_EQ(model.data.validation_ds.global_batch_size, 8);
  EXPECT_EQ(model.data.validation_ds.micro_batch_size, 4);
  EXPECT_FALSE(model.data.validation_ds.add_eos);
  EXPECT_EQ(model.data.train_ds.max_seq_length, 2048);
  EXPECT_EQ(model.data.validation_ds.max_seq_length, 2048);
  EXPECT_TRUE(model.data.train_ds.shuffle);
  EXPECT_THAT(
      load(model, "", {"data.train_ds.shuffle=False", "data.validation_ds.shuffle=True"}),
      ::testing::ElementsAre(::testing::HasSubstr("data.validation_ds.shuffle is ignored: validation follows the order of the file")));
  EXPECT_FALSE(model.data.train_ds.shuffle);
}

TEST(SftDataConfig, SpecialTokensMayBeEscapesOfYaml) {
  Model<SftDataConfig> model;
  EXPECT_TRUE(
      load(model, "data:\n  chat: true\n  chat_prompt_tokens:\n    turn_start: \"\\x11\"\n    system_turn_start: \"<extra_id_0>\"\n")
          .empty());
  EXPECT_EQ(model.data.chat_prompt_tokens.turn_start, "\x11");
  EXPECT_EQ(model.data.chat_prompt_tokens.system_turn_start, "<extra_id_0>");
  EXPECT_EQ(model.data.chat_prompt_tokens.end_of_turn, "\n");
}

}  // namespace
}  // namespace kedge
