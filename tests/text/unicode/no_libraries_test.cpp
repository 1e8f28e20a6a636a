// Built with no_regex.cpp and no_normal_form.cpp, as on a machine without PCRE2 and utf8proc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/text/tokenizer/byte_tokenizer.h"
#include "kedge/text/tokenizer/split_scanner.h"
#include "kedge/text/unicode/normal_form.h"
#include "kedge/text/unicode/regex.h"

#include "tests/support/expect_error.h"
#include "tests/support/toy_tokenizer.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;

TEST(NoLibraries, ErrorsNameThePackage) {
  EXPECT_FALSE(has_regex());
  EXPECT_EQ(testing::error_of([] { return Regex(R"(\d)", "here"); }),
            "here: the expression \\d needs PCRE2, and kedge was built without it: install libpcre2-dev and build again");
  EXPECT_EQ(testing::error_of([] { return to_normal_form("e\u0301", NormalForm::nfc); }),
            "this text needs a Unicode normal form, and kedge was built without utf8proc: install libutf8proc-dev and build again");
  EXPECT_EQ(testing::error_of([] { return to_lower_case("\u00C9"); }),
            "this text needs Unicode's lower case, and kedge was built without utf8proc: install libutf8proc-dev and build again");
  EXPECT_EQ(testing::error_of([] { return grapheme_length("e\u0301"); }),
            "this text needs Unicode's graphemes, and kedge was built without utf8proc: install libutf8proc-dev and build again");
}

TEST(NoLibraries, WhatNeedsNoneWorks) {
  EXPECT_EQ(to_normal_form("d\u00E9j\u00E0 \u65E5\u672C", NormalForm::nfc), "d\u00E9j\u00E0 \u65E5\u672C");
  EXPECT_EQ(to_lower_case("ABC"), "abc");
  EXPECT_EQ(grapheme_length("\r\n"), 2U);
  EXPECT_EQ(grapheme_length("ab"), 1U);
  EXPECT_THAT(make_byte_tokenizer()->encode("\u00E9"), ElementsAre(0xC3, 0xA9));
}

TEST(NoLibraries, TokenizersOfTheUsualKindsLoad) {
  EXPECT_THAT(testing::toy_bpe().encode("abc a"), ElementsAre(5, 6));  // GPT-2's way to split
  for (const std::string_view expression : {kLlama3Expression, kQwen2Expression}) {
    Json json = testing::parse(R"({"normalizer": {"type": "NFC"}, "model": {"type": "BPE", "vocab": {"a": 0, "1": 1}, "merges": []}})");
    json.set(
        "pre_tokenizer",
        Json::Object{
            {"type", "Split"}, {"pattern", Json::Object{{"Regex", std::string(expression)}}}, {"behavior", "Isolated"}, {"invert", false}});
    EXPECT_THAT(JsonTokenizer(json, "toy").encode("a1a"), ElementsAre(0, 1, 0));
  }
}

}  // namespace
}  // namespace kedge
