#include "kedge/text/tokenizer/split_scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "kedge/core/utf8.h"
#include "kedge/text/unicode/regex.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> scan(std::string_view expression, std::string_view text) {
  std::vector<WordSpan> words;
  find_split_scanner(expression)(text, 100, words);
  std::vector<std::string> found;
  for (const WordSpan& word : words) found.emplace_back(text.substr(word.start - 100, word.end - word.start));
  return found;
}

// Mostly the characters that decide: apostrophes, blanks, new lines, letters, digits; now and then any at all.
std::string random_text(std::mt19937& random) {
  static const std::u32string kDeciding =
      U"'''sStTdDmMlLrRvVeE  \n\n\r\t.,!09azAZ\u017F\u00E9\u4E00\u0661\u00B2\u0301\u3000\u00A0\u2028\u0085\u180E\U0001F600";
  std::string text;
  const size_t length = random() % 24;
  for (size_t i = 0; i < length; ++i) {
    char32_t code = kDeciding[random() % kDeciding.size()];
    if (random() % 16 == 0) code = static_cast<char32_t>(random() % 0x110000);
    if (code >= 0xD800 && code <= 0xDFFF) code = U'x';
    utf8_append(text, code);
  }
  return text;
}

TEST(SplitScanner, SplitsAsGpt2Does) {
  EXPECT_THAT(scan(kGpt2Expression, "Hello's  world 12x\n\n !?"), ElementsAre("Hello", "'s", " ", " world", " 12", "x", "\n\n", " !?"));
  EXPECT_THAT(scan(kGpt2Expression, "a  "), ElementsAre("a", "  "));
  EXPECT_THAT(scan(kGpt2Expression, ""), ElementsAre());
}

TEST(SplitScanner, SplitsAsLlama3AndQwen2Do) {
  EXPECT_THAT(scan(kLlama3Expression, "I'LL 12345\n\n  x!\n"), ElementsAre("I", "'LL", " ", "123", "45", "\n\n", " ", " x", "!\n"));
  EXPECT_THAT(scan(kQwen2Expression, "a 12"), ElementsAre("a", " ", "1", "2"));
  EXPECT_THAT(scan(kQwen2Expression, "\tx 'hello"), ElementsAre("\tx", " '", "hello"));
}

TEST(SplitScanner, FindsExactlyTheMatchesOfItsExpression) {
  std::mt19937 random(2);
  for (const std::string_view expression : {kGpt2Expression, kLlama3Expression, kQwen2Expression}) {
    const Regex regex(expression, "here");
    for (int round = 0; round < 30'000; ++round) {
      const std::string text = random_text(random);
      std::vector<std::string> expected;
      regex.for_each_match(text, [&](size_t start, size_t end) { expected.push_back(text.substr(start, end - start)); });
      ASSERT_EQ(scan(expression, text), expected) << expression << " on: " << text;
    }
  }
}

TEST(SplitScanner, ThereIsNoneForOtherExpressions) { EXPECT_EQ(find_split_scanner(R"(\p{L}+)"), nullptr); }

}  // namespace
}  // namespace kedge
