#include "kedge/text/unicode/regex_syntax.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

// A PCRE2 whose letters are a to y and whose script Han is one ideograph.
CodeSet small_pcre2(const std::string& name) {
  if (name == "Nl") return *category_set("Nl");
  if (name == "Nd") return CodeSet({{'0', '9'}, {'x', 'x'}});  // and a letter too many
  if (name == "sc:Han") return CodeSet({{0x4E00, 0x4E00}});
  return {};
}

std::string translated(std::string_view expression) { return to_pcre2(expression, "here", small_pcre2); }

TEST(RegexSyntax, SpellsSpacesOut) {
  const std::string spaces = R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}-\x{2029}\x{202f}\x{205f}\x{3000})";
  EXPECT_EQ(translated(R"(\s+)"), "[" + spaces + "]+");
  EXPECT_EQ(translated(R"([^\sx])"), "[^" + spaces + "\\x{78}]");
}

TEST(RegexSyntax, AddsToAPropertyWhatPcre2DoesNotCount) {
  EXPECT_EQ(translated(R"(\p{Nl})"), "[\\p{Nl}]");
  EXPECT_EQ(translated(R"(\p{Han})"), R"([\p{sc:Han}\x{2b739}\x{2ebf0}-\x{2ee5d}\x{31350}-\x{323af}])");
}

TEST(RegexSyntax, SpellsAPropertyOutWherePcre2CountsTooMuch) {
  EXPECT_TRUE(translated(R"(\d)").starts_with(R"([\x{30}-\x{39}\x{660}-\x{669})"));
}

TEST(RegexSyntax, ReadsAnchorsAndDotsAsRubyDoes) {
  EXPECT_EQ(translated("^a$"), "(?m:^)a(?m:$)");
  EXPECT_EQ(translated("a.(?m:.)"), "a(?-s:.)(?-i:(?s:.))");
}

TEST(RegexSyntax, ReadsIntervalsAsRubyDoes) {
  EXPECT_EQ(translated("a{1,3}+"), "(?:a{1,3})+");  // no possessive interval
  EXPECT_EQ(translated("a{2}?"), "(?:a{2})?");      // no lazy exact count
  EXPECT_EQ(translated("a{1,3}?b++c??"), "a{1,3}?b++c??");
  EXPECT_EQ(translated("a{,2}"), "a{0,2}");
  EXPECT_EQ(translated("a{x}"), R"(a\x{7b}x\x{7d})");
}

TEST(RegexSyntax, WorksOutIntersectionsAndNestedClasses) {
  EXPECT_EQ(translated("[a-f&&[^c]]"), R"([\x{61}-\x{62}\x{64}-\x{66}])");
  EXPECT_EQ(translated("[a[b-d]]"), R"([\x{61}\x{62}-\x{64}])");
  EXPECT_EQ(translated("[a&&b]"), "(?!)");
}

TEST(RegexSyntax, GroupsKeepTheirOptions) {
  EXPECT_EQ(translated("(?i:'s|t)"), R"((?i:\x{27}s|t))");
  EXPECT_EQ(translated("a(?i)b|c"), "a(?i:b|c)");
  EXPECT_EQ(translated("(a)(?=b)(?<!c)"), "(?:a)(?=b)(?<!c)");
}

TEST(RegexSyntax, NamesWhatItRefuses) {
  const auto refusal = [](std::string_view expression) { return testing::error_of([&] { return translated(expression); }); };
  EXPECT_EQ(refusal(R"((a)\1)"), R"(here: the expression (a)\1 uses \1 at byte 5, which is not supported)");
  EXPECT_EQ(refusal("(?x: a)"), "here: the expression (?x: a) uses (?x at byte 1, which is not supported");
  EXPECT_EQ(refusal(R"(\p{Alphabetic})"), R"(here: the expression \p{Alphabetic} uses \p{Alphabetic} at byte 3, which is not supported)");
  EXPECT_EQ(refusal("[a"), "here: the expression [a uses a class without an end at byte 2, which is not supported");
  EXPECT_EQ(refusal("(a"), "here: the expression (a uses a group without an end at byte 2, which is not supported");
  EXPECT_EQ(refusal("a)"), "here: the expression a) uses ) at byte 1, which is not supported");
  EXPECT_EQ(refusal("[z-a]"), "here: the expression [z-a] uses a range that runs backwards at byte 4, which is not supported");
  EXPECT_EQ(refusal("[[:alpha:]]"), "here: the expression [[:alpha:]] uses [:alpha:] at byte 1, which is not supported");
  EXPECT_EQ(refusal("*a"), "here: the expression *a uses a quantifier with nothing before it at byte 0, which is not supported");
  EXPECT_EQ(refusal("a\xFF"), "here: the expression is not UTF-8 at byte 1");
}

}  // namespace
}  // namespace kedge
