#include "kedge/text/tokenizer/streaming_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "kedge/core/utf8.h"
#include "kedge/text/tokenizer/byte_tokenizer.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> pieces(const std::string& bytes) {
  const auto tokenizer = make_byte_tokenizer();
  StreamingDecoder decoder(*tokenizer);
  std::vector<std::string> out;
  for (const char byte : bytes) out.push_back(decoder.feed(static_cast<uint8_t>(byte)));
  out.push_back(decoder.flush());
  return out;
}

TEST(StreamingDecoder, NeverEmitsHalfACharacter) {
  EXPECT_THAT(pieces("a\u00E9"), ElementsAre("a", "", "\u00E9", ""));
  EXPECT_THAT(pieces("\U0001F600"), ElementsAre("", "", "", "\U0001F600", ""));
}

TEST(StreamingDecoder, LetsGoOfBytesThatNothingCanComplete) {
  EXPECT_THAT(pieces("\xFFx"), ElementsAre("\xFF", "x", ""));
  EXPECT_THAT(pieces("\xC3x"), ElementsAre("", "\xC3x", ""));
  EXPECT_THAT(pieces("\xED\xA0\x80"), ElementsAre("", "\xED\xA0", "\x80", ""));  // a surrogate
  EXPECT_THAT(pieces("\xE0\x80"), ElementsAre("", "\xE0\x80", ""));              // overlong
  EXPECT_THAT(pieces("\xF4\x90"), ElementsAre("", "\xF4\x90", ""));              // above U+10FFFF
  EXPECT_THAT(pieces("\xF0\x9F\x98"), ElementsAre("", "", "", "\xF0\x9F\x98"));  // the end
}

TEST(StreamingDecoder, AddsUpToTheWhole) {
  const auto tokenizer = make_byte_tokenizer();
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    TokenIds ids(random() % 20);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % 4 == 0 ? random() % 259 : 0x80 + random() % 0x78);
    StreamingDecoder decoder(*tokenizer, SpecialTokens::keep);
    std::string text;
    for (const TokenId id : ids) {
      const std::string piece = decoder.feed(id);
      text += piece;
    }
    text += decoder.flush();
    ASSERT_EQ(text, tokenizer->decode(ids));
  }
}

TEST(StreamingDecoder, SkipsSpecialTokensUnlessTold) {
  const auto tokenizer = make_byte_tokenizer();
  StreamingDecoder skipping(*tokenizer);
  EXPECT_EQ(skipping.feed(257) + skipping.feed('a') + skipping.flush(), "a");
  StreamingDecoder keeping(*tokenizer, SpecialTokens::keep);
  EXPECT_EQ(keeping.feed(257) + keeping.feed('a') + keeping.flush(), "<bos>a");
}

TEST(StreamingDecoder, StartsAfreshBehindAFlush) {
  const auto tokenizer = make_byte_tokenizer();
  StreamingDecoder decoder(*tokenizer);
  EXPECT_EQ(decoder.feed(0xC3), "");
  EXPECT_EQ(decoder.flush(), "\xC3");
  EXPECT_EQ(decoder.feed(0xA9) + decoder.flush(), "\xA9");
}

TEST(StreamingDecoder, RefusesAnIdOutsideTheVocabulary) {
  const auto tokenizer = make_byte_tokenizer();
  EXPECT_EQ(testing::error_of([&] { return StreamingDecoder(*tokenizer).feed(259); }),
            "cannot decode: 259 is not an id of this vocabulary of 259");
  EXPECT_EQ(testing::error_of([&] { return StreamingDecoder(*tokenizer).feed(-1); }),
            "cannot decode: -1 is not an id of this vocabulary of 259");
}

}  // namespace
}  // namespace kedge
