#include "kedge/data/sets/preference_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_encoders.h"

namespace kedge {
namespace {

using testing::asset;
using testing::byte_encoder;
using testing::error_of;
using ::testing::HasSubstr;
using testing::render_toy_chat;
using testing::shown;
using testing::TempFolder;

class PreferenceTest : public ::testing::Test {
 protected:
  PreferenceDataset load(const Path& path, PreferenceUse use) {
    const JsonlFile file(path);
    return PreferenceDataset(Rows::of_file(path, rows_per_pair(file)), byte_encoder(), config_, use, render_toy_chat);
  }
  PreferenceDataset data(const std::string& content, PreferenceUse use = PreferenceUse::ranking) {
    return load(folder_.file("f.jsonl", content), use);
  }
  // prompt|chosen|rejected of one row.
  std::string pair(const std::string& row) {
    const JsonlFile file(folder_.file("f.jsonl", row));
    const PreferencePair read = PreferenceReader(config_, render_toy_chat).read(file.row(0));
    return read.prompt + "|" + read.chosen + "|" + read.rejected;
  }
  std::string error(const std::string& row) {
    return error_of<RowError>([&] { return pair(row); }).substr((folder_ / "f.jsonl").string().size());
  }

  TempFolder folder_;
  PreferenceConfig config_;
};

TEST_F(PreferenceTest, ReadsEveryLayout) {
  EXPECT_EQ(pair(R"({"prompt": "p", "chosen": "c", "rejected": "r"})"), "p|c|r");
  EXPECT_EQ(pair(R"({"prompt": "p", "chosen_response": "c", "rejected_response": "r"})"), "p|c|r");
  const std::string rendered = "<user:q><assistant:|c>|r>";
  EXPECT_EQ(
      pair(
          R"({"prompt": [{"role": "user", "content": "q"}], "chosen_response": {"role": "assistant", "content": "c"}, "rejected_response": {"role": "assistant", "content": "r"}})"),
      rendered)
      << "messages";
  EXPECT_EQ(
      pair(
          R"({"prompt": "q", "chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "c"}], "rejected": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "r"}]})"),
      rendered)
      << "whole dialogues";
  EXPECT_EQ(
      pair(
          R"({"conversations": [{"from": "human", "value": "q"}], "chosen": {"from": "gpt", "value": "c"}, "rejected": {"from": "gpt", "value": "r"}})"),
      rendered)
      << "ShareGPT";
  EXPECT_EQ(pair(R"({"chosen": "\n\nHuman: q\n\nAssistant: c", "rejected": "\n\nHuman: q\n\nAssistant: r"})"),
            "\n\nHuman: q\n\nAssistant:| c| r");
}

TEST_F(PreferenceTest, FieldsMayHaveOtherNames) {
  config_.names.prompt = "question", config_.names.chosen = "good", config_.names.rejected = "bad";
  EXPECT_EQ(pair(R"({"question": "p", "good": "c", "bad": "r", "chosen": 1})"), "p|c|r");
  config_.prompt_template = "{instruction}\\n{input}\\n";
  EXPECT_EQ(pair(R"({"instruction": "do", "input": "x", "good": "c", "bad": "r"})"), "do\nx\n|c|r");
}

TEST_F(PreferenceTest, WhatIsWrongIsNamed) {
  EXPECT_EQ(error(R"({"prompt": "p", "chosen": "c"})"),
            ":1: no \"rejected\" field; the row has \"prompt\", \"chosen\"; set model.data.fields.rejected if it has another name");
  EXPECT_EQ(error(R"({"prompt": "p", "chosen": "c", "rejected": 3})"),
            ":1: the rejected answer: expected a string or a list of messages, found an integer");
  EXPECT_EQ(error(R"({"chosen": "c", "rejected": "r"})"),
            ":1: no \"prompt\" field, and the answers are not dialogues with \"Assistant:\" turns");
  EXPECT_EQ(error(R"({"chosen": "\n\nHuman: q\n\nAssistant: c", "rejected": "\n\nHuman: x\n\nAssistant: r"})"),
            ":1: the two sides have different prompts");
  EXPECT_EQ(error(R"({"prompt": "p", "chosen": "c", "rejected": "r", "chosen_reward": "x"})"),
            ":1: \"chosen_reward\": expected a number, found a string");
}

TEST_F(PreferenceTest, TwoLinesOfTextAreAPair) {
  config_.append_eod = true;
  const PreferenceDataset pairs = data("{\"text\": \"p good\"}\n{\"text\": \"p bad\"}\n{\"text\": \"q good\"}\n{\"text\": \"q bad\"}\n");
  ASSERT_EQ(pairs.size(), 2);
  const PreferenceExample second = pairs.get(1);
  EXPECT_EQ(shown(second.chosen), "q good$");
  EXPECT_EQ(shown(second.rejected), "q bad$");
  EXPECT_EQ(second.chosen_reward, 1);
  EXPECT_EQ(second.rejected_reward, 0);
  EXPECT_EQ(error_of([&] { return data("{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n").size(); }),
            (folder_ / "f.jsonl").string() + ": 3 rows; expected a multiple of 2, because every 2 make one example");
  EXPECT_EQ(error_of([&] { return data("{\"text\": \"a\"}\n{\"text\": \"b\"}\n", PreferenceUse::labelled).size(); }),
            (folder_ / "f.jsonl").string() +
                ": lines of {\"text\"} do not say where the prompt ends; expected rows of prompt, chosen and rejected");
}

TEST_F(PreferenceTest, APairWithDifferentPromptsIsLeftOutAndNamed) {
  ::testing::internal::CaptureStderr();
  const PreferenceDataset pairs = data(R"({"chosen": "\n\nHuman: q\n\nAssistant: c", "rejected": "\n\nHuman: q\n\nAssistant: r"}
{"chosen": "\n\nHuman: q\n\nAssistant: c", "rejected": "\n\nHuman: x\n\nAssistant: r"}
{"chosen": "\n\nHuman: z\n\nAssistant: c", "rejected": "\n\nHuman: z\n\nAssistant: r"}
)");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(pairs.size(), 2);
  EXPECT_EQ(pairs.num_dropped(), 1);
  EXPECT_EQ(shown(pairs.get(1).chosen), "\n\nHuman: z\n\nAssistant: c");
  EXPECT_NE(log.find("left out 1 pairs whose sides have different prompts; lines 2"), std::string::npos) << log;
}

TEST_F(PreferenceTest, ForRankingTheNextPairThatFitsStandsIn) {
  config_.seq_length = 4;
  const PreferenceDataset pairs = data(R"({"prompt": "p", "chosen": "cccc", "rejected": "r"}
{"prompt": "p", "chosen": "c", "rejected": "rrr"}
{"prompt": "p", "chosen": "c", "rejected": "rrrr"}
)");
  EXPECT_EQ(shown(pairs.get(0).rejected), "prrr");
  EXPECT_EQ(shown(pairs.get(2).rejected), "prrr");  // past the end, round to the second
  EXPECT_EQ(pairs.get(2).source, 1);
  EXPECT_EQ(pairs.num_replaced(), 3);
}

TEST_F(PreferenceTest, WithLabelsAPairThatIsTooLongIsCutAndMasked) {
  config_.seq_length = 40;
  const PreferenceDataset pairs = data("{\"prompt\": \"p\", \"chosen\": \"" + std::string(40, 'c') + R"(", "rejected": "r"}
{"prompt": "pp", "chosen": "c", "rejected": "r", "chosen_reward": 0.75, "rejected_reward": 0.25}
)",
                                       PreferenceUse::labelled);
  EXPECT_TRUE(pairs.get(0).masked);
  EXPECT_EQ(pairs.get(0).chosen.size(), 32U);
  EXPECT_EQ(shown(pairs.get(0).rejected), "pr");
  EXPECT_EQ(pairs.num_masked(), 1);  // however often it is read
  const PreferenceExample second = pairs.get(1);
  EXPECT_FALSE(second.masked);
  EXPECT_EQ(second.num_prompt_tokens, 2);
  EXPECT_EQ(second.chosen_reward, 0.75);
  EXPECT_EQ(second.rejected_reward, 0.25);
}

TEST_F(PreferenceTest, OrPairsThatAreTooLongAreLeftOut) {
  config_.seq_length = 4;
  config_.drop_over_long = true;
  const PreferenceDataset pairs =
      data("{\"prompt\": \"p\", \"chosen\": \"cccc\", \"rejected\": \"r\"}\n{\"prompt\": \"p\", \"chosen\": \"c\", \"rejected\": \"r\"}\n");
  EXPECT_EQ(pairs.size(), 1);
  EXPECT_EQ(shown(pairs.get(0).chosen), "pc");
}

TEST_F(PreferenceTest, SplitsAreCutBetweenPairs) {
  const auto file = folder_.file("f.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n{\"text\": \"d\"}\n");
  config_.data_prefix = Json::Array{file.string()};
  config_.splits_string = "1,1,0";
  const auto splits = open_preference_data(config_, "model.data");
  EXPECT_EQ(splits.at("train").size(), 1);
  EXPECT_EQ(splits.at("validation").row(0, 1).text("text"), "d");
}

TEST_F(PreferenceTest, RealFilesLoad) {
  KEDGE_NEEDS_ASSET("preference");
  const PreferenceDataset hh = load(asset("preference/hh-rlhf-harmless-test/harmless-base-test.jsonl.gz"), PreferenceUse::labelled);
  EXPECT_EQ(hh.size(), 2307);
  EXPECT_EQ(hh.num_dropped(), 5);
  const PreferenceDataset share_gpt = load(asset("preference/llamafactory/dpo_en_demo.json"), PreferenceUse::labelled);
  EXPECT_EQ(share_gpt.size(), 300);
  config_.seq_length = 1 << 20;
  config_.prompt_template = "{instruction}\\n{input}\\n";
  const PreferenceDataset raschka = load(asset("preference/raschka-dpo/instruction-data-with-preference.json"), PreferenceUse::labelled);
  EXPECT_EQ(raschka.size(), 1100);
  const PreferenceExample first = raschka.get(0);
  EXPECT_EQ(first.num_prompt_tokens, 92);  // both lines with their ends
}

TEST_F(PreferenceTest, APairIsEncodedAtLoad) {
  const auto load = [&](const std::string& prompt, const std::string& rejected, TextEncoder encoder, PreferenceUse use) {
    const std::string row = R"({"prompt": ")" + prompt + R"(", "chosen": "c", "rejected": ")" + rejected + "\"}";
    return PreferenceDataset(Rows::of_file(folder_.file("f.jsonl", row)), std::move(encoder), config_, use, render_toy_chat).size();
  };
  for (const auto use : {PreferenceUse::ranking, PreferenceUse::labelled}) {
    EXPECT_EQ(load("p", "r", testing::encoder_without_z(), use), 1);
    EXPECT_EQ(error_of([&] { return load("p", "z", testing::encoder_without_z(), use); }),
              (folder_ / "f.jsonl").string() + ":1: the tokenizer's id 122 is outside the model's vocabulary of 122");
  }
  EXPECT_EQ(load("xa", "b", testing::merging_encoder(), PreferenceUse::ranking), 1);
  EXPECT_THAT(error_of([&] { return load("xa", "b", testing::merging_encoder(), PreferenceUse::labelled); }),
              HasSubstr(":1: the prompt's tokens change"));
}

}  // namespace
}  // namespace kedge
