#include "kedge/data/sets/chat_dataset.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_encoders.h"

namespace kedge {
namespace {

using testing::byte_encoder;
using testing::digits;
using testing::error_of;
using testing::render_toy_chat;
using testing::shown;
using testing::TempFolder;

class ChatTest : public ::testing::Test {
 protected:
  ChatTest() {
    config_.chat_prompt_tokens = {.system_turn_start = "S", .turn_start = "T", .label_start = "L", .end_of_turn = ".", .end_of_name = ":"};
  }
  ChatDataset data(const std::string& content, int64_t max_seq_length = 1000) {
    return ChatDataset(Rows::of_file(folder_.file("f.jsonl", content)), byte_encoder(), config_, max_seq_length, render_toy_chat);
  }
  void expect_row(const std::string& content, const std::string& text, const std::string& mask, int64_t max_seq_length = 1000) {
    const MaskedTokens tokens = data(content, max_seq_length).get(0);
    EXPECT_EQ(shown(tokens.ids), text);
    EXPECT_EQ(digits(tokens.mask), mask);
  }
  std::string error(const std::string& content) {
    return error_of<RowError>([&] { return data(content).size(); }).substr((folder_ / "f.jsonl").string().size());
  }

  TempFolder folder_;
  SftDataConfig config_;
};

TEST_F(ChatTest, AConversationIsMaskedByTheReferencesRules) {
  expect_row(R"({"system": "s", "mask": "U", "conversations": [{"from": "U", "value": "q"}, {"from": "A", "value": "a", "label": null}]})",
             "SSystem:s.TU:q.TA:a.T",  //
             "000000000000000000111");
}

TEST_F(ChatTest, AnEmptySystemPromptAndAUserAtTheEnd) {
  expect_row(
      R"({"mask": "U", "type": null, "conversations": [{"from": "U", "value": "q"}, {"from": "A", "value": "a"}, {"from": "U", "value": "r"}]})",
      "SSystem:.TU:q.TA:a.TU:r.",  //
      "000000000000000001110000");
}

TEST_F(ChatTest, ALabelIsReadButNotTrainedOn) {
  expect_row(
      R"({"system": "", "mask": "U", "type": "VALUE_TO_TEXT", "conversations": [{"from": "U", "value": "q"}, {"from": "A", "value": "a", "label": "good"}]})",
      "SSystem:.TU:q.TA:Lgood:a.T",  //
      "00000000000000000000000111");
}

TEST_F(ChatTest, TwoRolesMayBeMasked) {
  expect_row(
      R"({"system": "", "mask": "U,X", "conversations": [{"from": "U", "value": "q"}, {"from": "A", "value": "a"}, {"from": "X", "value": "x"}]})",
      "SSystem:.TU:q.TA:a.TX:x.",  //
      "000000000000000001110000");
}

TEST_F(ChatTest, ARowThatIsTooLongIsCutOnTheRight) {
  const char* row = R"({"system": "", "mask": "U", "conversations": [{"from": "U", "value": "q"}, {"from": "A", "value": "abc"}]})";
  expect_row(row, "SSystem:.TU:q.TA:ab", "0000000000000000011", 19);
  const ChatDataset rows = data(row, 15);
  EXPECT_TRUE(rows.get(0).trains_nothing());
  EXPECT_EQ(rows.truncations().answers_lost.count(), 1);
  EXPECT_EQ(rows.truncations().truncated.count(), 0);
}

TEST_F(ChatTest, MessagesAreTrainedOnWhereTheTemplateSays) {
  expect_row(R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "r"}]})",
             "<user:q><assistant:a><user:r>",  //
             "00000000000000000001100000000");
  expect_row(R"({"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]})", "<user:q><assistant:a>",
             "000000000000000000011");
}

TEST_F(ChatTest, WhatIsWrongIsRefusedAtLoad) {
  const std::string turns = R"("conversations": [{"from": "U", "value": "q"}, {"from": "A", "value": "a"}])";
  EXPECT_EQ(error("{\"mask\": \"V\", " + turns + "}"), ":1: \"mask\": \"V\" has no turn in the conversation");
  EXPECT_EQ(error("{\"mask\": \"U,\", " + turns + "}"), ":1: \"mask\": \"\" has no turn in the conversation");
  EXPECT_EQ(error("{\"mask\": \"U,A\", " + turns + "}"), ":1: nothing to train on: no turn of a trained role follows the first");
  EXPECT_EQ(error("{\"mask\": \"U\", \"type\": \"X\", " + turns + "}"),
            ":1: \"type\": \"X\"; expected null, VALUE_TO_TEXT or TEXT_TO_VALUE");
  EXPECT_EQ(error("{\"mask\": \"U\", \"system\": 3, " + turns + "}"), ":1: \"system\": expected a string, found an integer");
  EXPECT_EQ(error(R"({"mask": "U", "conversations": []})"), ":1: \"conversations\": a list without turns");
  EXPECT_EQ(error(R"({"mask": "U", "conversations": 3})"), ":1: \"conversations\": expected a list of turns, found an integer");
  EXPECT_EQ(error(R"({"mask": "U", "conversations": [3]})"), ":1: \"conversations\"[0]: expected an object, found an integer");
  EXPECT_EQ(error(R"({"mask": "U", "conversations": [{"from": "U"}]})"), ":1: \"conversations\"[0]: no \"value\" field");
  EXPECT_EQ(error(R"({"mask": "U", "conversations": [{"from": "U", "value": "q", "label": 3}]})"),
            ":1: \"conversations\"[0].label: expected a string, found an integer");
  EXPECT_EQ(error(R"({"x": 1})"), ":1: no \"messages\" field; the row has \"x\"; rows of prompts and answers need model.data.chat=false");
  EXPECT_EQ(error(R"({"messages": [{"role": "user", "content": "q"}]})"),
            ":1: nothing to train on: no turn of a trained role follows the first");
}

TEST_F(ChatTest, SpansThatAreOutOfOrderAreABug) {
  EXPECT_THROW(static_cast<void>(span_pieces({"abc", {{2, 3}, {1, 2}}})), Bug);
  EXPECT_THROW(static_cast<void>(span_pieces({"abc", {{2, 4}}})), Bug);
}

TEST_F(ChatTest, IdsOutsideTheModelsVocabularyAreRefusedAtLoad) {
  const auto load = [&](const std::string& said) {
    const std::string row = R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": ")" + said + "\"}]}";
    return ChatDataset(Rows::of_file(folder_.file("f.jsonl", row)), testing::encoder_without_z(), config_, 1000, render_toy_chat).size();
  };
  EXPECT_EQ(load("a"), 1);
  EXPECT_EQ(error_of([&] { return load("z"); }),
            (folder_ / "f.jsonl").string() + ":1: the tokenizer's id 122 is outside the model's vocabulary of 122");
}

}  // namespace
}  // namespace kedge
