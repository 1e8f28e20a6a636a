#include "kedge/data/sets/prompt_reader.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_encoders.h"

namespace kedge {
namespace {

using testing::byte_encoder;
using testing::error_of;
using testing::merging_encoder;
using testing::render_toy_chat;
using testing::shown;
using testing::TempFolder;

class PromptReaderTest : public ::testing::Test {
 protected:
  std::string prompt(const std::string& row) { return PromptReader(config_, render_toy_chat).text(at(row)); }
  std::string answered(const std::string& row) {
    const Row read = at(row);
    const PromptResponse texts = PromptReader(config_, render_toy_chat).with_response(read, read.at("r"), "the answer");
    return texts.prompt + "|" + texts.response;
  }
  Row at(const std::string& row) {
    file_ = std::make_unique<JsonlFile>(folder_.file("f.jsonl", row));
    return file_->row(0);
  }
  template <typename Call>
  std::string error(Call&& call) {
    return error_of<RowError>(call).substr((folder_ / "f.jsonl").string().size());
  }

  TempFolder folder_;
  std::unique_ptr<JsonlFile> file_;
  DataConfig config_;
};

TEST_F(PromptReaderTest, TakesTextPromptOrMessages) {
  EXPECT_EQ(prompt(R"({"text": "t", "prompt": "p"})"), "t");
  EXPECT_EQ(prompt(R"({"prompt": "p"})"), "p");
  EXPECT_EQ(prompt(R"({"messages": [{"role": "user", "content": "q"}]})"), "<user:q><assistant:");
  EXPECT_EQ(prompt(R"({"prompt": [{"role": "user", "content": "q"}]})"), "<user:q><assistant:");
  EXPECT_EQ(prompt(R"({"conversations": [{"from": "human", "value": "q"}]})"), "<user:q><assistant:");
}

TEST_F(PromptReaderTest, OrTheNamedFieldOrATemplate) {
  config_.names.prompt = "question";
  EXPECT_EQ(prompt(R"({"text": "t", "question": "q"})"), "q");
  config_.prompt_template = "Q: {question}\\n";
  EXPECT_EQ(prompt(R"({"text": "t", "question": "q"})"), "Q: q\n");
}

TEST_F(PromptReaderTest, WhatIsMissingOrEmptyIsNamed) {
  EXPECT_EQ(error([&] { return prompt(R"({"x": 1})"); }),
            ":1: no \"text\", \"prompt\" or \"messages\" field; the row has \"x\"; set model.data.fields.prompt to the field with the "
            "prompt, or model.data.prompt_template to combine several");
  EXPECT_EQ(error([&] { return prompt(R"({"text": 1})"); }), ":1: \"text\": expected a string or a list of messages, found an integer");
  EXPECT_EQ(error([&] { return prompt(R"({"text": ""})"); }), ":1: an empty prompt");
  config_.names.prompt = "q";
  EXPECT_EQ(error([&] { return prompt(R"({"text": "t"})"); }), ":1: no \"q\" field; the row has \"text\"");
}

TEST_F(PromptReaderTest, StringsAreJoinedAsTheyStand) { EXPECT_EQ(answered(R"({"prompt": "p ", "r": " a"})"), "p | a"); }

TEST_F(PromptReaderTest, WhereOneIsAMessageBothAreRendered) {
  EXPECT_EQ(answered(R"({"prompt": [{"role": "user", "content": "q"}], "r": "a"})"), "<user:q><assistant:|a>");
  EXPECT_EQ(answered(R"({"prompt": "q", "r": {"role": "assistant", "content": "a"}})"), "<user:q><assistant:|a>");
  EXPECT_EQ(answered(R"({"conversations": [{"from": "human", "value": "q"}], "r": [{"from": "gpt", "value": "a"}]})"),
            "<user:q><assistant:|a>");
  EXPECT_EQ(error([&] { return answered(R"({"prompt": "q", "r": [{"from": "gpt", "value": "a"}, {"from": "gpt", "value": "b"}]})"); }),
            ":1: the answer: expected one message, found 2");
}

TEST_F(PromptReaderTest, AWholeDialogueEndsWithTheAnswer) {
  const PromptReader reader(config_, render_toy_chat);
  const auto texts =
      reader.whole_dialogue(at(R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})"));
  EXPECT_EQ(texts.prompt, "<user:q><assistant:");
  EXPECT_EQ(texts.response, "a>");
  EXPECT_EQ(error([&] { return reader.whole_dialogue(at(R"({"messages": [{"role": "user", "content": "q"}]})")).prompt; }),
            ":1: \"messages\": expected a prompt and an answer, found one message");
}

TEST_F(PromptReaderTest, ATemplateThatChangesThePromptIsRefused) {
  const PromptReader reader(config_, [](const ChatRequest& request) {
    return RenderedChat{request.add_generation_prompt ? "open" : "closed", {}};
  });
  EXPECT_EQ(
      error([&] { return reader.with_response(at(R"({"prompt": [{"role": "user", "content": "q"}], "r": "a"})"), Json("a"), "r").prompt; }),
      ":1: the chat template renders the prompt differently with and without its answer");
}

TEST_F(PromptReaderTest, TextGetsBosAndEosOnlyWhereAsked) {
  EXPECT_EQ(shown(encode_text(byte_encoder(), ends_of(config_), "ab")), "ab");
  config_.add_bos = config_.append_eod = true;
  EXPECT_EQ(shown(encode_text(byte_encoder(), ends_of(config_), "ab")), "^ab$");
  TextEncoder with_bos = byte_encoder();
  with_bos.encode = [](std::string_view) { return TokenIds{testing::kToyBos, 'x'}; };
  EXPECT_EQ(shown(encode_text(with_bos, ends_of(config_), "x")), "^x$");  // never two
}

TEST_F(PromptReaderTest, TheAnswerBeginsBehindThePromptsTokens) {
  const auto where = [] { return std::string("f:1"); };
  const JointTokens joint = encode_joint(byte_encoder(), {.bos = true, .eos = true}, {"ask", "say"}, where);
  EXPECT_EQ(shown(joint.ids), "^asksay$");
  EXPECT_EQ(joint.num_prompt_tokens, 4);
  EXPECT_TRUE(error_of<RowError>([&] {
                return encode_joint(merging_encoder(), {}, {"xa", "by"}, where).num_prompt_tokens;
              }).starts_with("f:1: the prompt's tokens change when the answer follows"));
  const JointTokens common = encode_joint(merging_encoder(), {.boundary = PromptBoundary::common}, {"xa", "by"}, where);
  EXPECT_EQ(common.ids, (TokenIds{'x', 300, 'y'}));
  EXPECT_EQ(common.num_prompt_tokens, 1);
}

}  // namespace
}  // namespace kedge
