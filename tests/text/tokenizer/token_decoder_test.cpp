#include "kedge/text/tokenizer/token_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/toy_tokenizer.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::parse;

// What each token hands on, and at last what the end does.
std::vector<std::string> steps(std::string_view json, const std::vector<std::string>& tokens) {
  const Json parsed = parse(json);
  const TokenDecoder decoder(&parsed, "here");
  const auto state = decoder.start();
  std::vector<std::string> parts;
  for (const std::string& token : tokens) state->push(token, parts.emplace_back());
  state->finish(parts.emplace_back());
  return parts;
}

std::string decode(std::string_view json, const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& part : steps(json, tokens)) text += part;
  return text;
}

constexpr const char* kLlama2 = R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
  {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})";

TEST(TokenDecoder, ReadsByteLevelTokens) {
  EXPECT_THAT(steps(R"({"type": "ByteLevel"})", {"Hi", "\u0120\u00C3", "\u00A9"}), ElementsAre("Hi", " \xC3", "\xA9", ""));
  EXPECT_EQ(decode(R"({"type": "ByteLevel"})", {"\u0120a", " b"}), " a b") << "a token of another alphabet stands as it is";
}

TEST(TokenDecoder, HandsOnAtOnceWhatLlama2sChainCanSay) {
  EXPECT_THAT(steps(kLlama2, {"\u2581Hi", "\u2581you", "<0xC3>", "<0xA9>"}), ElementsAre("Hi", " you", "\xC3", "\xA9", ""));
  EXPECT_EQ(decode(kLlama2, {"\u2581", "\u2581a"}), " a") << "one space is taken off, not two";
  EXPECT_EQ(decode(kLlama2, {"<0xFF>", "x"}), "\xFFx");
}

TEST(TokenDecoder, DropsTheFirstMark) {
  EXPECT_EQ(decode(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"})", {"_a", "_b_"}), "a b ");
  EXPECT_EQ(decode(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"})", {"_a", "_b"}), " a b");
  EXPECT_EQ(decode(R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false})", {"_a"}), " a");
}

TEST(TokenDecoder, HoldsBackTheLastTokenOfASuffixedVocabulary) {
  EXPECT_THAT(steps(R"({"type": "BPEDecoder", "suffix": "</w>"})", {"he", "llo</w>", "you</w>"}), ElementsAre("", "he", "llo ", "you"));
}

TEST(TokenDecoder, StripsBothEndsOfATokenOrOfAll) {
  EXPECT_EQ(decode(R"({"type": "Strip", "content": "x", "start": 1, "stop": 1})", {"xxaxx", "x", "a"}), "xaxa");
  const std::string fused =
      R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Strip", "content": "é", "start": 2, "stop": 1}]})";
  EXPECT_EQ(decode(fused, {"\u00E9", "\u00E9\u00E9a", "\u00E9"}), "\u00E9a");
}

TEST(TokenDecoder, ReplacesByExpressionInEachToken) {
  EXPECT_EQ(
      decode(R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"Regex": "_+"}, "content": " "}, {"type": "Fuse"}]})",
             {"a__", "_b"}),
      "a  b");
  EXPECT_EQ(
      decode(R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Replace", "pattern": {"Regex": "_+"}, "content": " "}]})",
             {"a__", "_b"}),
      "a b");
}

TEST(TokenDecoder, WithoutOneTokensAreWords) {
  EXPECT_EQ(decode("null", {"a", "b"}), "a b");
  EXPECT_EQ(decode("null", {}), "");
}

TEST(TokenDecoder, NamesWhatItLacks) {
  const auto error = [](std::string_view json) { return testing::error_of([&] { return decode(json, {}); }); };
  EXPECT_EQ(error(R"({"type": "Sequence", "decoders": [{"type": "WordPiece"}]})"),
            "here.decoders[0]: the decoder type \"WordPiece\" is not supported");
  EXPECT_EQ(error(R"({"type": "Strip", "content": "ab", "start": 0, "stop": 0})"), "here.content: expected one character, found \"ab\"");
  EXPECT_EQ(error(R"({"type": "Strip", "content": "a", "start": -1, "stop": 0})"), "here.start: -1 is negative");
}

}  // namespace
}  // namespace kedge
