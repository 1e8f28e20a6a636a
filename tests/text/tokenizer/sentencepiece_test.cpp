#include "kedge/text/tokenizer/sentencepiece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "kedge/text/tokenizer/byte_level.h"

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/toy_tokenizer.h"

namespace kedge {
namespace {

using namespace kedge::testing;  // the fields of a protocol buffer
using ::testing::ElementsAre;

const std::string kBpe = text_field(2, number_field(3, 2));
const std::string kNoExtras = text_field(3, number_field(4, 0));  // keeps extra spaces

// <unk> <s> </s> mark a b ab mark-ab, scores falling.
std::string small_bpe() {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("\u2581", -1) + piece("a", -2) + piece("b", -3) +
         piece("ab", -4) + piece("\u2581ab", -5) + kBpe + kNoExtras;
}

std::string byte_pieces() {
  std::string pieces;
  for (int byte = 0; byte < 256; ++byte) pieces += piece(byte_token(static_cast<uint8_t>(byte)), 0, 6);
  return pieces;
}

TEST(SentencePiece, MergesThePieceOfTheHighestScoreFirst) {
  const SentencePieceTokenizer tokenizer(small_bpe(), "here");
  EXPECT_THAT(tokenizer.encode("ab ab"), ElementsAre(7, 7));
  EXPECT_THAT(tokenizer.encode("ba"), ElementsAre(3, 5, 4));
  EXPECT_THAT(tokenizer.encode("a  b"), ElementsAre(3, 4, 3, 3, 5));
  EXPECT_THAT(tokenizer.encode(""), ElementsAre());
}

TEST(SentencePiece, ARunOfUnknownCharactersIsOneUnk) {
  const SentencePieceTokenizer tokenizer(small_bpe(), "here");
  EXPECT_THAT(tokenizer.encode("axyb"), ElementsAre(3, 4, 0, 5));
  EXPECT_EQ(tokenizer.decode(TokenIds{3, 4, 0, 5}), "a \u2047 b");
}

TEST(SentencePiece, FallsBackToBytes) {
  const SentencePieceTokenizer tokenizer(small_bpe() + byte_pieces() + text_field(2, number_field(35, 1)), "here");
  const TokenIds ids = tokenizer.encode("a\u00E9");
  EXPECT_THAT(ids, ElementsAre(3, 4, 8 + 0xC3, 8 + 0xA9));
  EXPECT_EQ(tokenizer.decode(ids), "a\u00E9");
  EXPECT_EQ(tokenizer.decode(TokenIds{8 + 0xC3}), "\xC3");
}

TEST(SentencePiece, CharactersThatAreNoPiecesStillMerge) {
  // "xy" is a piece, x and y are none.
  const SentencePieceTokenizer tokenizer(small_bpe() + piece("xy", -6), "here");
  EXPECT_THAT(tokenizer.encode("xyx"), ElementsAre(3, 8, 0));
}

TEST(SentencePiece, UserDefinedSymbolsStandAlone) {
  const SentencePieceTokenizer tokenizer(small_bpe() + piece("aa", 0, 4), "here");
  EXPECT_THAT(tokenizer.encode("baab"), ElementsAre(3, 5, 8, 5));
}

TEST(SentencePiece, UnigramTakesTheHighestSum) {
  const SentencePieceTokenizer tokenizer(
      piece("<unk>", 0, 2) + piece("\u2581", -1) + piece("a", -1) + piece("b", -1) + piece("ab", -3) + piece("\u2581ab", -2.5F), "here");
  EXPECT_THAT(tokenizer.encode("ab"), ElementsAre(5));               // -2.5 against -3
  EXPECT_THAT(tokenizer.encode("  bab "), ElementsAre(1, 3, 2, 3));  // a b: -2, ab: -3; extra spaces are gone
  EXPECT_THAT(tokenizer.encode("xa"), ElementsAre(1, 0, 2));
}

TEST(SentencePiece, DecodingTakesTheDummySpaceOffOnce) {
  const SentencePieceTokenizer tokenizer(small_bpe(), "here");
  EXPECT_EQ(tokenizer.decode(TokenIds{1, 7, 7, 2}), "ab ab");
  EXPECT_EQ(tokenizer.decode(TokenIds{3, 3, 4}), " a");
  EXPECT_EQ(tokenizer.decode(TokenIds{4, 3}), "a ");
}

TEST(SentencePiece, AddedTokensAreFoundFirst) {
  SentencePieceTokenizer tokenizer(small_bpe(), "here");
  tokenizer.add_tokens({{.content = "<|end|>", .special = true}});
  EXPECT_EQ(tokenizer.vocab_size(), 9);
  EXPECT_THAT(tokenizer.encode("ab<|end|>ab"), ElementsAre(7, 8, 6)) << "no dummy space behind an added token";
  tokenizer.set_space_after_added(true);
  EXPECT_THAT(tokenizer.encode("ab<|end|>ab"), ElementsAre(7, 8, 7));
  EXPECT_EQ(tokenizer.decode(TokenIds{7, 8, 6}), "ab<|end|>ab");
  EXPECT_EQ(tokenizer.decode(TokenIds{7, 8, 6}, SpecialTokens::skip), "abab");
  EXPECT_EQ(tokenizer.token_of(8), "<|end|>");
  EXPECT_EQ(tokenizer.id_of("\u2581ab"), 7);
}

TEST(SentencePiece, TheDummySpaceCanBeDropped) {
  SentencePieceTokenizer tokenizer(small_bpe(), "here");
  tokenizer.set_space_after_added(true);
  tokenizer.drop_dummy_space();
  EXPECT_THAT(tokenizer.encode("ab ab"), ElementsAre(6, 7));
  EXPECT_EQ(tokenizer.decode(TokenIds{6, 7}), "ab ab");
  EXPECT_EQ(tokenizer.decode(TokenIds{7, 7}), " ab ab") << "the space is the text's own";
}

TEST(SentencePiece, AddedTokensForNormalizedTextAreFoundToo) {
  SentencePieceTokenizer tokenizer(small_bpe(), "here");
  tokenizer.add_tokens({{.content = "<new>", .normalized = true}});
  EXPECT_THAT(tokenizer.encode("ab<new>ab"), ElementsAre(7, 8, 6));
}

TEST(SentencePiece, KnowsItsOwnSpecialPieces) {
  const SentencePieceTokenizer tokenizer(small_bpe(), "here");
  const SpecialIds special = tokenizer.own_special();
  EXPECT_EQ(special.bos, 1);
  EXPECT_EQ(special.eos, 2);
  EXPECT_EQ(special.pad, std::nullopt);
  EXPECT_EQ(special.unk, 0);
  EXPECT_TRUE(tokenizer.is_special(0) && tokenizer.is_special(1));
  EXPECT_FALSE(tokenizer.is_special(3));
}

TEST(SentencePiece, FingerprintsTellModelsApart) {
  EXPECT_EQ(SentencePieceTokenizer(small_bpe(), "here").fingerprint(), SentencePieceTokenizer(small_bpe(), "there").fingerprint());
  EXPECT_NE(SentencePieceTokenizer(small_bpe(), "here").fingerprint(),
            SentencePieceTokenizer(small_bpe() + piece("c", -9), "here").fingerprint());
}

TEST(SentencePiece, RefusesAnUnusedPieceThatWouldMerge) {
  EXPECT_EQ(error_of([] { return SentencePieceTokenizer(small_bpe() + piece("ba", -6, 5), "here").vocab_size(); }),
            "here: piece 8 \"ba\" is unused but can be merged, which is not supported");
}

std::vector<std::string> strings_of_vectors() {
  const std::string all = read_text(assets_folder() / "tokenizers/vectors/ggml-vocab-llama-spm.gguf.inp");
  const std::string mark = "\n__ggml_vocab_test__\n";
  std::vector<std::string> strings;
  for (size_t start = 0, end = all.find(mark); end != std::string::npos; start = end + mark.size(), end = all.find(mark, start))
    strings.push_back(all.substr(start, end - start));
  return strings;
}

TEST(SentencePiece, GivesMistralsStringsTheIdsThatSentencePieceGives) {
  KEDGE_NEEDS_ASSET("tokenizers");
  const SentencePieceTokenizer tokenizer(read_text(assets_folder() / "tokenizers/mistral/tokenizer.model.v1"), "mistral");
  std::istringstream golden(read_text(source_folder() / "tests/golden/mistral_ids.txt"));
  const auto strings = strings_of_vectors();
  ASSERT_EQ(strings.size(), 46U);
  for (const std::string& text : strings) {
    std::string line;
    std::getline(golden, line);
    std::istringstream numbers(line);
    TokenIds expected;
    for (TokenId id = 0; numbers >> id;) expected.push_back(id);
    EXPECT_EQ(tokenizer.encode(text), expected) << text;
    EXPECT_EQ(tokenizer.decode(expected), text);
  }
}

}  // namespace
}  // namespace kedge
