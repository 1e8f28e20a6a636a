#include "kedge/text/unicode/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> matches(std::string_view expression, std::string_view text) {
  std::vector<std::string> found;
  Regex(expression, "here").for_each_match(text, [&](size_t start, size_t end) { found.emplace_back(text.substr(start, end - start)); });
  return found;
}

TEST(Regex, FindsMatchesFromLeftToRight) {
  EXPECT_THAT(matches(R"( ?\p{L}+|\p{N})", "ab 12 \u00E9t\u00E9"), ElementsAre("ab", "1", "2", " \u00E9t\u00E9"));
  EXPECT_THAT(matches("x", "abc"), ElementsAre());
  EXPECT_THAT(matches("x", ""), ElementsAre());
}

TEST(Regex, PassesOverAnEmptyMatchBehindAnother) {
  EXPECT_THAT(matches("a*", "aab"), ElementsAre("aa", ""));  // the empty one is behind b
  EXPECT_THAT(matches("", "\u00E9x"), ElementsAre("", "", ""));
}

TEST(Regex, ClassesAreThoseOfUnicodeSixteen) {
  EXPECT_THAT(matches(R"(\p{L}+)", "a\U000323AF\u1C89."), ElementsAre("a\U000323AF\u1C89"));
  EXPECT_THAT(matches(R"(\s)", "a\u180E\u0085b"), ElementsAre("\u0085"));
  EXPECT_THAT(matches(R"(\w+)", "e\u0301-\u00B2"), ElementsAre("e\u0301", "\u00B2"));
}

TEST(Regex, IgnoresCaseAsUnicodeDoes) { EXPECT_THAT(matches("(?i:'s)", "'s'S'\u017F"), ElementsAre("'s", "'S", "'\u017F")); }

TEST(Regex, MatchesRunsOfAMillionCharacters) {
  const std::string blank(1'000'000, ' ');
  EXPECT_THAT(matches(R"(\s+(?!\S)|\s+)", blank + "x"), ElementsAre(blank.substr(1), " "));
  EXPECT_THAT(matches(R"((?:a|b)*c)", std::string(200'000, 'a') + "c"), ElementsAre(std::string(200'000, 'a') + "c"));
}

// PCRE2's own limit is 20 GB.
TEST(Regex, GivesUpBeforeItTakesAllMemory) {
  EXPECT_EQ(testing::error_of([] { return matches(R"((?:a|b)*c)", std::string(3'000'000, 'a') + "xc"); }),
            "a regular expression gave up on this text: heap limit exceeded");
}

TEST(Regex, NamesAnExpressionThatDoesNotCompile) {
  EXPECT_EQ(testing::error_of([] { return Regex("(?<=a+)b", "here"); }),
            "here: the expression (?<=a+)b is not supported: lookbehind assertion is not fixed length");
}

TEST(Regex, ReadsPerlsSyntaxToo) {
  const auto matches = [](const char* expression, const char* text, Regex::Extent extent = Regex::Extent::anywhere) {
    return Regex::perl(expression, "here", extent).matches(text);
  };
  EXPECT_TRUE(matches("^b", "b\na"));
  EXPECT_FALSE(matches("^a", "b\na"));  // an anchor of the text, not of a line
  EXPECT_TRUE(matches("(?m)^a", "b\na"));
  EXPECT_TRUE(matches(R"((\w)\1)", "abba"));
  EXPECT_FALSE(matches("a.b", "a\nb"));
  EXPECT_TRUE(matches("(?s)a.b", "a\nb"));
  EXPECT_EQ(testing::error_of([] { return Regex::perl("a(b", "reward.pattern"); }),
            "reward.pattern: the expression a(b is wrong at byte 3: missing closing parenthesis");
}

TEST(Regex, CanWantAllOfTheText) {
  const Regex regex = Regex::perl("<a>.*</a>|x", "here", Regex::Extent::whole_text);
  EXPECT_TRUE(regex.matches("<a>1\n2</a>"));
  EXPECT_TRUE(regex.matches("x"));
  EXPECT_FALSE(regex.matches("<a>1</a>\n"));
  EXPECT_FALSE(regex.matches(" <a>1</a>"));
  EXPECT_FALSE(regex.matches("xx"));
}

}  // namespace
}  // namespace kedge
