#include "kedge/text/tokenizer/text_encoder.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/toy_encoders.h"

namespace kedge {
namespace {

using testing::blank_encoder;
using testing::byte_encoder;
using testing::digits;
using testing::error_of;
using testing::merging_encoder;
using testing::shown;

TEST(TextEncoder, MissingSpecialTokensAreNamed) {
  TextEncoder encoder = byte_encoder();
  EXPECT_EQ(encoder.eos_id(), testing::kToyEos);
  encoder.bos.reset(), encoder.eos.reset();
  EXPECT_EQ(error_of([&] { return encoder.bos_id(); }), "a BOS token is requested, and the tokenizer has none");
  EXPECT_EQ(error_of([&] { return encoder.eos_id(); }), "an EOS token is needed, and the tokenizer has none");
}

TEST(TextEncoder, IdsOutsideTheModelsVocabularyAreRefused) {
  TextEncoder encoder = byte_encoder();
  const auto error = [&] { return error_of([&] { encoder.check_ids(TokenIds{1, 300, 2}, [] { return "f:7"; }); }); };
  EXPECT_NO_THROW(encoder.check_ids(TokenIds{1, 300, 2}, [] { return ""; }));
  encoder.vocab_size = 300;
  EXPECT_EQ(error(), "f:7: the tokenizer's id 300 is outside the model's vocabulary of 300");
  encoder.vocab_size = 301;
  EXPECT_NO_THROW(encoder.check_ids(TokenIds{1, 300, 2}, [] { return ""; }));
}

TEST(TextEncoder, ALeadingBlankOfTheTokenizersOwnIsNoticed) {
  EXPECT_FALSE(adds_leading_blank(byte_encoder()));
  EXPECT_TRUE(adds_leading_blank(blank_encoder()));
}

TEST(PieceEncoder, TokensDoNotReachAcrossTheBorderOfWhatIsTrainedOn) {
  const PieceEncoder encoder(merging_encoder());
  const std::vector<TextPiece> cut = {{"xa", false}, {"by", true}};
  EXPECT_EQ(encoder.encode(cut).ids, (TokenIds{'x', 'a', 'b', 'y'}));
  EXPECT_EQ(digits(encoder.encode(cut).mask), "0011");
  const std::vector<TextPiece> together = {{"xa", false}, {"", false}, {"by", false}, {"ab", true}};
  EXPECT_EQ(encoder.encode(together).ids, (TokenIds{'x', 300, 'y', 300}));
  EXPECT_EQ(digits(encoder.encode(together).mask), "0001");
}

TEST(PieceEncoder, OnlyTheFirstPieceGetsTheTokenizersBlank) {
  const PieceEncoder encoder(blank_encoder());
  const std::vector<TextPiece> pieces = {{"ask", false}, {"say", true}, {" more", false}};
  EXPECT_EQ(shown(encoder.encode(pieces).ids), "_asksay_more");
  EXPECT_EQ(digits(encoder.encode(pieces).mask), "000011100000");
}

// As a normalizer that prepends a blank to every text between added tokens; | is one.
TEST(PieceEncoder, BehindAnAddedTokenThePieceGetsTheBlankThatAPromptGets) {
  TextEncoder prepending = blank_encoder();
  prepending.encode = [blanks = blank_encoder()](std::string_view text) {
    TokenIds ids;
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      end = text[begin] == '|' ? begin + 1 : std::min(text.find('|', begin), text.size());
      const auto part = text.substr(begin, end - begin);
      for (const TokenId id : part == "|" ? TokenIds{'|'} : blanks.encode(part)) ids.push_back(id);
    }
    return ids;
  };
  const std::vector<TextPiece> pieces = {{"|ask|", false}, {"say|", true}, {"more ", false}, {"yes", true}};
  const MaskedTokens tokens = PieceEncoder(prepending).encode(pieces);
  EXPECT_EQ(shown(tokens.ids), "|_ask|_say|_more_yes");
  EXPECT_EQ(tokens.ids, prepending.encode("|ask|say|more yes"));
  EXPECT_EQ(digits(tokens.mask), "00000011111000000111");
}

// As SentencePiece without byte fallback: control characters and what is not ASCII are unknown, several in a row one token.
TEST(PieceEncoder, APieceKeepsTheUnknownCharacterItBeginsWith) {
  TextEncoder unknowing = blank_encoder();
  unknowing.encode = [blanks = blank_encoder()](std::string_view text) {
    TokenIds ids;
    for (const TokenId id : blanks.encode(text)) {
      const TokenId known = id < 32 || id > 127 ? '?' : id;
      if (known != '?' || ids.back() != '?') ids.push_back(known);
    }
    return ids;
  };
  const PieceEncoder encoder(unknowing);
  for (const char* previous : {"ask", "\xC3\xA9"}) {
    EXPECT_EQ(shown(encoder.inside(previous, "\xC3\xA9 say")), "?_say");
    EXPECT_EQ(shown(encoder.inside(previous, "\xC3\xA9")), "?");
    EXPECT_EQ(shown(encoder.inside(previous, " \xC3\xA9")), "_?");
    EXPECT_EQ(shown(encoder.inside(previous, "say \xC3\xA9")), "say_?");
  }
}

TEST(PieceEncoder, NoPiecesGiveNoTokens) {
  const PieceEncoder encoder(byte_encoder());
  EXPECT_TRUE(encoder.encode({}).ids.empty());
  const std::vector<TextPiece> empty = {{"", true}};
  EXPECT_TRUE(encoder.encode(empty).ids.empty());
}

TEST(MaskedTokens, AreCutAndAskedWhetherTheyTrainAnything) {
  MaskedTokens tokens;
  tokens.append(TokenIds{1, 2}, false);
  EXPECT_TRUE(tokens.trains_nothing());
  tokens.append(TokenIds{3}, true);
  EXPECT_FALSE(tokens.trains_nothing());
  tokens.cut(5);
  EXPECT_EQ(tokens.ids.size(), 3U);
  tokens.cut(2);
  EXPECT_EQ(tokens.ids, (TokenIds{1, 2}));
  EXPECT_TRUE(tokens.trains_nothing());
}

}  // namespace
}  // namespace kedge
