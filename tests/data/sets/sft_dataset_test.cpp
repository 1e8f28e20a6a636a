#include "kedge/data/sets/sft_dataset.h"

#include <gtest/gtest.h>

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_encoders.h"

namespace kedge {
namespace {

using testing::asset;
using testing::blank_encoder;
using testing::byte_encoder;
using testing::digits;
using testing::error_of;
using testing::shown;
using testing::TempFolder;

class SftTest : public ::testing::Test {
 protected:
  SftDataset data(const std::string& content, TextEncoder encoder = byte_encoder()) {
    return SftDataset(Rows::of_file(folder_.file("f.jsonl", content)), std::move(encoder), config_);
  }
  // Tokens and mask of one row.
  std::string row(const std::string& content, TextEncoder encoder = byte_encoder()) {
    const MaskedTokens tokens = data(content, std::move(encoder)).get(0);
    return shown(tokens.ids) + " " + digits(tokens.mask);
  }

  TempFolder folder_;
  SftFilesConfig config_;
};

const char* const kRow = R"({"input": " ask ", "output": "say"})";

TEST_F(SftTest, TheAnswerAndItsEndAreTrainedOn) {
  EXPECT_EQ(row(kRow), "ask say$ 00011111");  // the blank before the answer is the answer's
}

TEST_F(SftTest, BosSepAndEosStandWhereAsked) {
  config_.add_bos = config_.add_sep = true;
  EXPECT_EQ(row(kRow), "^ask0 say$ 0000011111");
  config_.add_bos = config_.add_sep = config_.add_eos = false;
  EXPECT_EQ(row(kRow), "ask say 0001111");
}

TEST_F(SftTest, ATemplateOfSeveralFieldsIsEncodedPieceByPiece) {
  config_.prompt_template = "Q: {q}\\nC:{c} A:{output}";
  config_.truncation_field = "q,c";
  EXPECT_EQ(row(R"({"q": "one", "c": "two", "output": "x"})"), "Q: one\nC:two A:x$ " + std::string(15, '0') + "11");
}

TEST_F(SftTest, ATokenizerThatAddsABlankGetsOneLess) {
  // "{input} {output}": the pieces are "ask" and " say"; the tokenizer's own blank takes the place of the second's.
  EXPECT_EQ(row(kRow, blank_encoder()), "_ask_say$ 000011111");
  config_.prompt_template = "{input}  {output}";
  EXPECT_EQ(row(kRow, blank_encoder()), "_ask__say$ 0000111111");
}

TEST_F(SftTest, TooLongRowsLoseTokensOfTheirInput) {
  config_.max_seq_length = 8;
  const std::string content = R"({"input": "123456", "output": "say"})";  // 6 + 4 + EOS = 11
  EXPECT_EQ(row(content), "123 say$ 00011111");
  config_.truncation_method = TruncationSide::left;
  EXPECT_EQ(row(content), "456 say$ 00011111");
}

TEST_F(SftTest, WhereThatIsNotEnoughPiecesAreCutFromTheirSide) {
  config_.max_seq_length = 5;
  EXPECT_EQ(row(R"({"input": "12", "output": "answer"})"), " ans$ 11111");  // two of the input, three from the end of the answer
  config_.truncation_method = TruncationSide::left;
  EXPECT_EQ(row(R"({"input": "12", "output": "answer"})"), "swer$ 11111");
}

TEST_F(SftTest, ALostAnswerIsCounted) {
  config_.prompt_template = "long text {output}";
  config_.truncation_field = "";
  config_.max_seq_length = 6;
  const SftDataset rows = data(R"({"output": "say"})");
  const MaskedTokens tokens = rows.get(0);
  EXPECT_EQ(shown(tokens.ids), "long $");
  EXPECT_EQ(digits(tokens.mask), "000001");
  EXPECT_EQ(rows.truncations().answers_lost.count(), 1);
  EXPECT_EQ(rows.truncations().truncated.count(), 0);
}

TEST_F(SftTest, SharesOfTheExcessAreEqualAndTheFirstFieldsTakeOneMore) {
  std::vector<TokenIds> pieces = {TokenIds(9, 1), TokenIds(9, 2), TokenIds(9, 3), TokenIds(9, 4)};
  truncate_pieces(pieces, {true, true, true, false}, 11, TruncationSide::right);
  EXPECT_EQ(pieces[0].size(), 5U);
  EXPECT_EQ(pieces[1].size(), 5U);
  EXPECT_EQ(pieces[2].size(), 6U);
  EXPECT_EQ(pieces[3].size(), 9U);
}

TEST_F(SftTest, TemplatesAndFieldsThatDoNotFitAreRefused) {
  config_.prompt_template = "{output} {input}";
  EXPECT_EQ(error_of([&] { return row(kRow); }), "prompt_template: \"{output} {input}\" does not end with {output} (label_key)");
  config_.prompt_template = "{input} {output}";
  config_.truncation_field = "context";
  EXPECT_EQ(error_of([&] { return row(kRow); }), "truncation_field: \"context\" is not in prompt_template \"{input} {output}\"");
  config_.truncation_field = "input";
  EXPECT_EQ(error_of([&] { return row(R"({"input": "a"})"); }),
            (folder_ / "f.jsonl").string() +
                ":1: no \"output\" field; the row has \"input\"; prompt_template=\"{input} {output}\" and label_key=output of "
                "model.data.train_ds say which fields are used");
  EXPECT_EQ(
      error_of([&] { return row(R"({"messages": []})"); }),
      (folder_ / "f.jsonl").string() + ":1: no \"input\" field; the row has \"messages\"; rows of conversations need model.data.chat=true");
  EXPECT_EQ(error_of([&] { return row(R"({"input": ["a"], "output": "b"})"); }),
            (folder_ / "f.jsonl").string() + ":1: \"input\": expected a string, found a list");
}

TEST_F(SftTest, FilesMayBeBlended) {
  config_.file_path = Json::Array{1, folder_.file("a.jsonl", kRow).string(), 1, folder_.file("b.jsonl", kRow).string()};
  EXPECT_EQ(open_sft_data(config_, "model.data.train_ds").size(), 2);
  config_.file_path = nullptr;
  EXPECT_EQ(error_of([&] { return open_sft_data(config_, "model.data.train_ds").size(); }),
            "model.data.train_ds.file_path: not set; expected a file");
}

TEST_F(SftTest, ARealInstructionFileLoads) {
  KEDGE_NEEDS_ASSET("preference/raschka-dpo/instruction-data.json");
  config_.prompt_template = "{instruction}\\n{input}\\n{output}";
  const SftDataset rows(Rows::of_file(asset("preference/raschka-dpo/instruction-data.json")), byte_encoder(), config_);
  ASSERT_EQ(rows.size(), 1100);
  EXPECT_EQ(shown(rows.get(2).ids), "Convert 45 kilometers to meters.\n\n45 kilometers is 45000 meters.$");
}

TEST_F(SftTest, IdsOutsideTheModelsVocabularyAreRefusedAtLoad) {
  const auto error = [&](const std::string& content) {
    return error_of([&] { return data(content, testing::encoder_without_z()).size(); }).substr((folder_ / "f.jsonl").string().size());
  };
  EXPECT_EQ(error(kRow), ":1: the tokenizer's id 257 is outside the model's vocabulary of 122");  // EOS
  config_.add_eos = false;
  EXPECT_EQ(data(kRow, testing::encoder_without_z()).size(), 1);
  EXPECT_EQ(error(str(kRow, "\n", R"({"input": "z", "output": "a"})")),
            ":2: the tokenizer's id 122 is outside the model's vocabulary of 122");
}

}  // namespace
}  // namespace kedge
