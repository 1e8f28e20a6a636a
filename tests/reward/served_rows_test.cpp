#include "kedge/reward/served_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/version.h"
#include "kedge/net/request_error.h"

#include "tests/support/expect_error.h"
#include "tests/support/judge_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::JudgeFolder;
using testing::TempFolder;

ModelConfig network() { return testing::tiny_config(testing::kByteLlama); }

WireTensor texts(const std::string& name, const std::vector<std::string>& values) {
  return text_tensor(name, {static_cast<int64_t>(values.size()), 1}, values);
}
WireTensor numbers(const std::string& name, const std::vector<int64_t>& shape, const std::vector<int64_t>& values) {
  return int64_tensor(name, shape, values);
}
TokenIds ids_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string refusal(const ServedRows& rows, const std::vector<WireTensor>& inputs) {
  try {
    static_cast<void>(rows.read(inputs));
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.what();
  }
  ADD_FAILURE() << "it was read";
  return "";
}

TEST(ServedRows, TextsGetNeitherBosNorEos) {
  const JudgeFolder folder;
  const ServedRows rows(folder.path(), network(), {.max_length = 10});
  const ReadRows read = rows.read(std::vector{texts("sentences", {"hi", "a longer sentence"})});
  EXPECT_THAT(read.rows, ElementsAre(ids_of("hi"), ids_of("a longer s")));  // cut
  EXPECT_EQ(read.width, 10);
}

TEST(ServedRows, BosAndEosWhereTheyAreAskedFor) {
  const JudgeFolder folder;
  const ServedRows rows(folder.path(), network(), {.max_length = 5, .add_bos = true, .add_eos = true});
  const ReadRows read = rows.read(std::vector{texts("sentences", {"hi", "longer"})});
  EXPECT_THAT(read.rows, ElementsAre(TokenIds{257, 'h', 'i', 258}, TokenIds{257, 'l', 'o', 'n', 258}));
  // Messages bring their own.
  EXPECT_EQ(rows.read(std::vector{texts("messages", {R"([{"role": "a", "content": ""}])"})}).rows[0], ids_of("a: \n"));
}

TEST(ServedRows, ConversationsAreRenderedByTheFoldersTemplate) {
  const JudgeFolder folder;
  const ServedRows rows(folder.path(), network(), {});
  const ReadRows read =
      rows.read(std::vector{texts("messages", {R"([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}])"})});
  EXPECT_THAT(read.rows, ElementsAre(ids_of("user: hi\nassistant: yo\n")));
}

TEST(ServedRows, IdsAreCutToTheirLengths) {
  const JudgeFolder folder;
  const ServedRows rows(folder.path(), network(), {});
  // What stands behind a row's end is not looked at.
  const ReadRows read =
      rows.read(std::vector{numbers("tokens", {2, 3}, {5, 6, 7, 8, -9, 9999}), numbers("sequence_lengths", {2, 1}, {3, 1})});
  EXPECT_THAT(read.rows, ElementsAre(TokenIds{5, 6, 7}, TokenIds{8}));
  EXPECT_EQ(read.width, 3);
}

TEST(ServedRows, SentencesCountBeforeEverythingElse) {
  const JudgeFolder folder;
  const ServedRows rows(folder.path(), network(), {});
  const WireTensor sentences = texts("sentences", {"s"}), messages = texts("messages", {"no JSON"});
  EXPECT_EQ(rows.read(std::vector{numbers("tokens", {1, 1}, {7}), messages, sentences}).rows[0], ids_of("s"));
}

TEST(ServedRows, WhatCannotBeReadIsTheCallersMistake) {
  const JudgeFolder folder;
  const ServedRows rows(folder.path(), network(), {.max_length = 80});
  const auto tokens = [](int64_t width, int64_t id, int64_t length) {
    return std::vector{numbers("tokens", {1, width}, std::vector<int64_t>(static_cast<size_t>(width), id)),
                       numbers("sequence_lengths", {1, 1}, {length})};
  };
  EXPECT_EQ(refusal(rows, tokens(3, 1, 0)), "sequence_lengths: row 0: 0 is not from 1 to 3");
  EXPECT_EQ(refusal(rows, tokens(3, 1, 4)), "sequence_lengths: row 0: 4 is not from 1 to 3");
  EXPECT_EQ(refusal(rows, tokens(3, 259, 3)), "tokens: row 0: id 259 is outside the model's vocabulary of 259");
  EXPECT_EQ(refusal(rows, tokens(3, -1, 3)), "tokens: row 0: id -1 is outside the model's vocabulary of 259");
  EXPECT_EQ(refusal(rows, tokens(81, 1, 3)), "tokens: 81 columns, but encoder_seq_length is 80");
  EXPECT_EQ(refusal(rows, tokens(70, 1, 65)), "sequence_lengths: row 0: 65 tokens, but the model has only 64 positions");
  EXPECT_EQ(refusal(rows, {numbers("tokens", {1, 1}, {7})}), "expected sentences, or tokens together with sequence_lengths");
  EXPECT_EQ(refusal(rows, {numbers("tokens", {1, 1}, {7}), numbers("sequence_lengths", {1, 2}, {1, 1})}),
            "sequence_lengths: expected one number per row, found 2");
  EXPECT_EQ(refusal(rows, {text_tensor("sentences", {1, 2}, std::vector<std::string>{"a", "b"})}),
            "sentences: expected one text per row, found 2");
  EXPECT_EQ(refusal(rows, {texts("sentences", {"a", ""})}), "sentences: row 1: no tokens");
  EXPECT_THAT(refusal(rows, {texts("sentences", {"ok", "bad \xFF"})}), HasSubstr("sentences: row 1: "));
  EXPECT_THAT(refusal(rows, {texts("messages", {"[{"})}), HasSubstr("messages: row 0: JSON:1:"));
  EXPECT_THAT(refusal(rows, {texts("messages", {R"({"role": 1})"})}), HasSubstr("messages: row 0: "));
}

TEST(ServedRows, ClientsAreToldWhatIdsMean) {
  const JudgeFolder folder;
  const ServedRows rows(folder.path(), network(), {.max_length = 77});
  const auto parameters = rows.parameters();
  EXPECT_THAT(parameters, ElementsAre(std::pair("tokenizer_fingerprint", make_byte_tokenizer()->fingerprint()),
                                      std::pair("chat_template_fingerprint", ChatTemplate::load(folder.path()).fingerprint()),
                                      std::pair("encoder_seq_length", "77"), std::pair("kedge_version", version())));
}

TEST(ServedRows, AFolderWithoutATokenizerReadsIds) {
  const TempFolder folder;
  const ServedRows rows(folder.path(), network(), {});
  ASSERT_EQ(rows.inputs().size(), 2U);
  EXPECT_EQ(rows.inputs()[0].name, "tokens");
  EXPECT_EQ(rows.read(std::vector{numbers("tokens", {1, 1}, {7}), numbers("sequence_lengths", {1, 1}, {1})}).rows[0], TokenIds{7});
  EXPECT_THAT(error_of([&] { return ServedRows(folder.path(), network(), {.add_bos = true}).inputs(); }),
              HasSubstr("add_bos: the tokenizer of"));
}

}  // namespace
}  // namespace kedge
