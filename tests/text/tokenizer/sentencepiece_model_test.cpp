#include "kedge/text/tokenizer/sentencepiece_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kedge/text/tokenizer/byte_level.h"

#include "tests/support/expect_error.h"
#include "tests/support/toy_tokenizer.h"

namespace kedge {
namespace {

using namespace kedge::testing;  // the fields of a protocol buffer

const std::string kPieces = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("a", -1.5F);

TEST(SentencePieceModel, ReadsPiecesAndSettings) {
  const std::string trainer = text_field(2, number_field(3, 2) + number_field(24, 1) + text_field(44, "?") + text_field(46, "<b>"));
  const std::string normalizer = text_field(3, text_field(1, "identity") + number_field(3, 0) + number_field(4, 0) + number_field(5, 0));
  const auto model = SentencePieceModel::parse(kPieces + trainer + normalizer, "here");
  ASSERT_EQ(model.pieces.size(), 3U);
  EXPECT_EQ(model.pieces[2].text, "a");
  EXPECT_EQ(model.pieces[2].score, -1.5F);
  EXPECT_EQ(model.pieces[1].type, SentencePieceModel::PieceType::control);
  EXPECT_EQ(model.unk_id, 0U);
  EXPECT_EQ(model.algorithm, SentencePieceModel::Algorithm::bpe);
  EXPECT_TRUE(model.whitespace_as_suffix);
  EXPECT_EQ(model.unk_surface, "?");
  EXPECT_EQ(model.bos_piece, "<b>");
  EXPECT_FALSE(model.add_dummy_prefix || model.remove_extra_whitespaces || model.escape_whitespaces);
}

TEST(SentencePieceModel, HasTheFormatsDefaults) {
  const auto model = SentencePieceModel::parse(kPieces, "here");
  EXPECT_EQ(model.algorithm, SentencePieceModel::Algorithm::unigram);
  EXPECT_TRUE(model.add_dummy_prefix && model.remove_extra_whitespaces && model.escape_whitespaces);
  EXPECT_FALSE(model.byte_fallback);
  EXPECT_EQ(model.eos_piece, "</s>");
  EXPECT_EQ(model.unk_surface, " \u2047 ");
}

TEST(SentencePieceModel, NamesWhatIsWrong) {
  const auto error = [](const std::string& bytes) { return error_of([&] { return SentencePieceModel::parse(bytes, "here"); }); };
  EXPECT_EQ(error(""), "here: not a SentencePiece model: it has no pieces");
  EXPECT_EQ(error("\x0A\x7F"), "here: not a SentencePiece model: it is cut short");
  EXPECT_EQ(error("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"), "here: not a SentencePiece model: it is cut short");
  EXPECT_EQ(error(std::string(12, '\xFF')), "here: not a SentencePiece model: a number that does not end");
  EXPECT_EQ(error("\x0B"), "here: not a SentencePiece model: a kind of field that SentencePiece never writes");
  EXPECT_EQ(error("IQ== 0\nIg== 1\n"),
            "here: is a tiktoken file (lines of base64 and a rank), not a SentencePiece model; kedge reads the tokenizer.json that the "
            "same model's "
            "Hugging Face folder has: put it next to this file");
  EXPECT_EQ(error(number_field(1, 5)), "here: not a SentencePiece model: a field of the wrong kind");
  EXPECT_EQ(error(kPieces + text_field(2, number_field(3, 4))),
            "here: SentencePiece's model type CHAR is not supported; expected UNIGRAM or BPE");
  EXPECT_EQ(error(kPieces + text_field(5, text_field(2, "x"))), "here: a denormalizer (replacements made when decoding) is not supported");
  EXPECT_EQ(error(kPieces + piece("a", 0)), "here: piece 3 \"a\" occurs twice");
  EXPECT_EQ(error(kPieces + piece("", 0)), "here: piece 3 is empty");
  EXPECT_EQ(error(kPieces + piece("\xFF", 0)), "here: piece 3 is not UTF-8");
  EXPECT_EQ(error(kPieces + piece(std::string("a\0", 2), 0)), "here: piece 3 holds a NUL");
  EXPECT_EQ(error(kPieces + piece("b", NAN)), "here: piece 3 has a score that is not a number");
  EXPECT_EQ(error(kPieces + piece("b", 0, 9)), "here: piece 3 is of an unknown type 9");
  EXPECT_EQ(error(kPieces + piece("<0xZZ>", 0, 6)), "here: piece 3 \"<0xZZ>\" is said to be a byte");
  EXPECT_EQ(error(piece("a", 0)), "here: expected one unknown piece, found 0");
  EXPECT_EQ(error(kPieces + text_field(2, number_field(35, 1))), "here: byte_fallback is set, but the 256 byte pieces are not all there");
}

}  // namespace
}  // namespace kedge
