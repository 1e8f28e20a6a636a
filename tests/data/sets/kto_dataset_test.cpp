#include "kedge/data/sets/kto_dataset.h"

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

class KtoTest : public ::testing::Test {
 protected:
  KtoDataset data(const std::string& content) {
    return KtoDataset(Rows::of_file(folder_.file("f.jsonl", content)), byte_encoder(), config_, render_toy_chat);
  }
  std::string row(const std::string& content) {
    const KtoExample example = data(content).get(0);
    return shown(example.ids) + " " + std::to_string(example.num_prompt_tokens) + (example.chosen ? " chosen" : " rejected");
  }
  std::string error(const std::string& content) {
    return error_of([&] { return row(content); }).substr((folder_ / "f.jsonl").string().size());
  }

  TempFolder folder_;
  DataConfig config_;
};

TEST_F(KtoTest, ReadsEveryLayout) {
  EXPECT_EQ(row(R"({"prompt": "ask", "response": "say", "preference": "chosen"})"), "asksay 3 chosen");
  EXPECT_EQ(row(R"({"prompt": "ask", "response": "say", "preference": "rejected"})"), "asksay 3 rejected");
  EXPECT_EQ(row(R"({"prompt": "ask", "completion": "say", "label": true})"), "asksay 3 chosen");
  EXPECT_EQ(row(R"({"prompt": [{"role": "user", "content": "q"}], "completion": [{"role": "assistant", "content": "a"}], "label": false})"),
            "<user:q><assistant:a> 19 rejected");
  EXPECT_EQ(row(R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "label": true})"),
            "<user:q><assistant:a> 19 chosen");
}

TEST_F(KtoTest, WhatIsMissingIsNamed) {
  EXPECT_EQ(error(R"({"prompt": "p", "response": "r"})"),
            ":1: no \"preference\" field; the row has \"prompt\", \"response\"; set model.data.fields.label if it has another name");
  EXPECT_EQ(error(R"({"prompt": "p", "label": true})"),
            ":1: no \"response\" field; the row has \"prompt\", \"label\"; set model.data.fields.response if it has another name");
  EXPECT_EQ(error(R"({"label": true})"),
            ":1: no \"response\" field; the row has \"label\"; set model.data.fields.response if it has another name");
  EXPECT_EQ(error(R"({"prompt": "p", "response": "r", "label": 1})"),
            ":1: the preference: expected \"chosen\", \"rejected\", true or false, found an integer");
  EXPECT_EQ(error(R"({"prompt": "p", "response": "r", "label": "good"})"),
            ":1: the preference: expected \"chosen\", \"rejected\", true or false, found \"good\"");
  EXPECT_EQ(error(R"({"prompt": "p", "response": null, "label": true})"),
            ":1: the answer: expected a string or a list of messages, found null");
  EXPECT_EQ(
      error(R"({"response": "r", "label": true})"),
      ":1: no \"text\", \"prompt\" or \"messages\" field; the row has \"response\", \"label\"; set model.data.fields.prompt to the field "
      "with the prompt, or model.data.prompt_template to combine several");
}

TEST_F(KtoTest, ARowThatIsTooLongIsCutAndMasked) {
  config_.seq_length = 35;
  const KtoDataset rows = data("{\"prompt\": \"p\", \"response\": \"" + std::string(35, 'r') + "\", \"preference\": \"chosen\"}");
  EXPECT_TRUE(rows.get(0).masked);
  EXPECT_EQ(rows.get(0).ids.size(), 32U);
  EXPECT_EQ(rows.num_masked(), 1);  // however often it is read
}

TEST_F(KtoTest, OrItIsLeftOut) {
  config_.seq_length = 3;
  config_.drop_over_long = true;
  const KtoDataset rows = data(R"({"prompt": "p", "response": "rrr", "label": true}
{"prompt": "p", "response": "r", "label": false}
)");
  EXPECT_EQ(rows.size(), 1);
  EXPECT_EQ(shown(rows.get(0).ids), "pr");
}

TEST_F(KtoTest, ARealFileLoads) {
  KEDGE_NEEDS_ASSET("preference/llamafactory/kto_en_demo.json");
  const KtoDataset rows(Rows::of_file(asset("preference/llamafactory/kto_en_demo.json")), byte_encoder(), config_, render_toy_chat);
  ASSERT_EQ(rows.size(), 300);
  EXPECT_TRUE(rows.get(0).chosen);
  EXPECT_FALSE(rows.get(299).chosen);
}

TEST_F(KtoTest, ARowIsEncodedAtLoad) {
  const auto load = [&](const std::string& prompt, const std::string& answer, TextEncoder encoder) {
    const std::string row = R"({"prompt": ")" + prompt + R"(", "response": ")" + answer + R"(", "label": true})";
    return KtoDataset(Rows::of_file(folder_.file("f.jsonl", row)), std::move(encoder), config_, render_toy_chat).size();
  };
  EXPECT_EQ(load("p", "r", testing::encoder_without_z()), 1);
  EXPECT_EQ(error_of([&] { return load("p", "z", testing::encoder_without_z()); }),
            (folder_ / "f.jsonl").string() + ":1: the tokenizer's id 122 is outside the model's vocabulary of 122");
  EXPECT_THAT(error_of([&] { return load("xa", "b", testing::merging_encoder()); }), HasSubstr(":1: the prompt's tokens change"));
}

}  // namespace
}  // namespace kedge
