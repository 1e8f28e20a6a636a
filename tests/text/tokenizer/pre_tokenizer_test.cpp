#include "kedge/text/tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/toy_tokenizer.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::parse;

std::vector<std::string> words(std::string_view json, std::string_view text, bool at_start = true) {
  const Json parsed = parse(json);
  PreTokenized pieces{std::string(text), {}, at_start};
  PreTokenizer(&parsed, "here").apply(pieces);
  std::vector<std::string> found;
  for (const WordSpan& word : pieces.words) found.push_back(pieces.text.substr(word.start, word.end - word.start));
  return found;
}

// The example of the format's own documentation.
std::vector<std::string> countdown(const std::string& behavior, bool invert = false) {
  return words(
      R"({"type": "Split", "pattern": {"String": "-"}, "behavior": ")" + behavior + R"(", "invert": )" + (invert ? "true}" : "false}"),
      "the-final--countdown");
}

TEST(PreTokenizer, SplitsWithEveryBehavior) {
  EXPECT_THAT(countdown("Removed"), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(countdown("Isolated"), ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(countdown("MergedWithPrevious"), ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(countdown("MergedWithNext"), ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(countdown("Contiguous"), ElementsAre("the", "-", "final", "--", "countdown"));
  EXPECT_THAT(countdown("Removed", true), ElementsAre("-", "-", "-"));
}

TEST(PreTokenizer, SplitsByExpression) {
  EXPECT_THAT(words(R"({"type": "Split", "pattern": {"Regex": "\\d+"}, "behavior": "Isolated", "invert": false})", "a12b"),
              ElementsAre("a", "12", "b"));
}

TEST(PreTokenizer, SpellsBytes) {
  const std::string plain = R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})";
  EXPECT_THAT(words(plain, "Hi \u00E9"), ElementsAre("Hi", "\u0120\u00C3\u00A9"));
  EXPECT_THAT(words(R"({"type": "ByteLevel", "add_prefix_space": true, "use_regex": false})", "a b"), ElementsAre("\u0120a\u0120b"));
  EXPECT_THAT(words(R"({"type": "ByteLevel", "add_prefix_space": true})", " a b"), ElementsAre("\u0120a", "\u0120b"));
}

TEST(PreTokenizer, LeavesBytesForAModelThatTakesThemSo) {
  const Json json = parse(R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
                              {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
  PreTokenizer pre_tokenizer(&json, "here");
  ASSERT_TRUE(pre_tokenizer.ends_in_byte_level());
  pre_tokenizer.leave_bytes();
  PreTokenized pieces{"\u00E9 1", {}, true};
  pre_tokenizer.apply(pieces);
  EXPECT_EQ(pieces.text, "\u00E9 1");
  ASSERT_EQ(pieces.words.size(), 2U);
  const Json other =
      parse(R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": false}, {"type": "Punctuation"}]})");
  EXPECT_FALSE(PreTokenizer(&other, "here").ends_in_byte_level());
  EXPECT_FALSE(PreTokenizer().ends_in_byte_level());
}

TEST(PreTokenizer, WritesSpacesAsMarks) {
  EXPECT_THAT(words(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"})", "a b  c"),
              ElementsAre("_a", "_b", "_", "_c"));
  EXPECT_THAT(words(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never", "split": false})", "a b"), ElementsAre("a_b"));
  const std::string first = R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": false})";
  EXPECT_THAT(words(first, "a b"), ElementsAre("_a_b"));
  EXPECT_THAT(words(first, "a b", false), ElementsAre("a_b"));
  EXPECT_THAT(words(first, " a"), ElementsAre("_a"));
  EXPECT_THAT(words(R"({"type": "Metaspace", "replacement": "_", "add_prefix_space": false})", "a b"), ElementsAre("a", "_b"));
}

TEST(PreTokenizer, SplitsByKindOfCharacter) {
  EXPECT_THAT(words(R"({"type": "Digits", "individual_digits": true})", "a12"), ElementsAre("a", "1", "2"));
  EXPECT_THAT(words(R"({"type": "Digits", "individual_digits": false})", "a12\u0661b"), ElementsAre("a", "12\u0661", "b"));
  EXPECT_THAT(words(R"({"type": "Punctuation"})", "a,,b"), ElementsAre("a", ",", ",", "b"));
  EXPECT_THAT(words(R"({"type": "Punctuation", "behavior": "Contiguous"})", "a,,b"), ElementsAre("a", ",,", "b"));
  EXPECT_THAT(words(R"({"type": "Whitespace"})", "it's 5 \u20AC!"), ElementsAre("it", "'", "s", "5", "\u20AC!"));
  EXPECT_THAT(words(R"({"type": "WhitespaceSplit"})", " it's\u3000x "), ElementsAre("it's", "x"));
  EXPECT_THAT(words(R"({"type": "BertPreTokenizer"})", "it's x"), ElementsAre("it", "'", "s", "x"));
  EXPECT_THAT(words(R"({"type": "CharDelimiterSplit", "delimiter": "x"})", "axbxx"), ElementsAre("a", "b"));
}

TEST(PreTokenizer, WithoutOneTheTextIsOneWord) {
  EXPECT_THAT(words("null", "a b"), ElementsAre("a b"));
  EXPECT_THAT(words("null", ""), ElementsAre());
}

TEST(PreTokenizer, RefusesToFillTheMemory) {
  Json::Array spelling;
  for (int i = 0; i < 60; ++i) spelling.push_back(parse(R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})"));
  const Json json(Json::Object{{"type", "Sequence"}, {"pretokenizers", std::move(spelling)}});
  EXPECT_THAT(testing::error_of([&] {
                PreTokenized pieces{"\u00E9", {}, true};
                PreTokenizer(&json, "here").apply(pieces);
                return 0;
              }),
              ::testing::MatchesRegex("the tokenizer's pre-tokenizer makes [0-9]+ bytes out of 2"));
}

TEST(PreTokenizer, NamesWhatItLacks) {
  const auto error = [](std::string_view json) { return testing::error_of([&] { return words(json, ""); }); };
  EXPECT_EQ(error(R"({"type": "Sequence", "pretokenizers": [{"type": "UnicodeScripts"}]})"),
            "here.pretokenizers[0]: the pre-tokenizer type \"UnicodeScripts\" is not supported");
  EXPECT_EQ(error(R"({"type": "Punctuation", "behavior": "Gone"})"),
            "here.behavior: \"Gone\" is not supported; expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
  EXPECT_EQ(error(R"({"type": "Metaspace", "replacement": "ab"})"), "here.replacement: expected one character, found \"ab\"");
  EXPECT_EQ(error(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"})"),
            "here.prepend_scheme: \"last\" is not supported");
  EXPECT_EQ(error(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "add_prefix_space": false})"),
            "here: add_prefix_space is false, but prepend_scheme is \"first\"");
  EXPECT_EQ(error("3"), "here: expected an object, found 3");
}

}  // namespace
}  // namespace kedge
