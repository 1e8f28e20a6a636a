#include "kedge/text/unicode/text_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/utf8.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;

TEST(TextLayout, NothingInATextMovesTheCursor) {
  EXPECT_EQ(printable("plain, d\u00e9j\u00e0 vu\nnext"), "plain, d\u00e9j\u00e0 vu\nnext");
  EXPECT_EQ(printable("\x1b[2Jgone\a\r\tend\x7f"), "\\x1b[2Jgone\\x07\\r\\tend\\x7f");
  EXPECT_EQ(printable("\u0085\u202e\u2028\ufeff"), "\\u{85}\\u{202e}\\u{2028}\\u{feff}");
  EXPECT_EQ(printable("a\xff\xe2\x82"), "a\\xff\\xe2\\x82");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\U0001f468\u200d\U0001f469"), "\U0001f468\u200d\U0001f469");
}

TEST(TextLayout, CountsColumns) {
  EXPECT_EQ(columns_of(""), 0U);
  EXPECT_EQ(columns_of("d\u00e9j\u00e0"), 4U);
  EXPECT_EQ(columns_of("e\u0301"), 1U);           // a mark on the letter
  EXPECT_EQ(columns_of("\u6f22\u5b57"), 4U);      // two characters of Chinese
  EXPECT_EQ(columns_of("\U0001f600\ufe0f"), 2U);  // an emoji and how it is drawn
  EXPECT_EQ(columns_of("\uac00\uff21"), 4U);
}

TEST(TextLayout, WrapsAtSpaces) {
  EXPECT_THAT(wrap("", 10), ElementsAre(""));
  EXPECT_THAT(wrap("one two three", 13), ElementsAre("one two three"));
  EXPECT_THAT(wrap("one two three", 12), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap("one two three", 6), ElementsAre("one", "two", "three"));
  EXPECT_THAT(wrap("one   two", 4), ElementsAre("one", "two"));
  EXPECT_THAT(wrap("one    ", 4), ElementsAre("one"));
  EXPECT_THAT(wrap("  in two", 6), ElementsAre("  in", "two"));
  EXPECT_THAT(wrap("a\n\nb\n", 5), ElementsAre("a", "", "b", ""));
}

TEST(TextLayout, BreaksLongWordsBetweenCharacters) {
  EXPECT_THAT(wrap("abcdefgh", 3), ElementsAre("abc", "def", "gh"));
  EXPECT_THAT(wrap("go abcdefgh", 4), ElementsAre("go", "abcd", "efgh"));
  EXPECT_THAT(wrap("\u6f22\u5b57\u6f22", 5), ElementsAre("\u6f22\u5b57", "\u6f22"));
  EXPECT_THAT(wrap("ae\u0301e\u0301", 2), ElementsAre("ae\u0301", "e\u0301"));
  EXPECT_THAT(wrap("\u6f22\u6f22", 1), ElementsAre("\u6f22", "\u6f22"));  // at least two columns
}

TEST(TextLayout, LinesAreNeverTooWideAndLoseOnlySpaces) {
  const std::string text =
      "The \u6f22\u5b57 of d\u00e9j\u00e0-vu  e\u0301e\u0301e\u0301 \U0001f600\U0001f600\U0001f600  averyveryverylongword   \n end";
  const auto without_spaces = [](std::string_view from) {
    std::string kept;
    for (const char c : from)
      if (c != ' ' && c != '\n') kept += c;
    return kept;
  };
  for (size_t width = 2; width < 60; ++width) {
    std::string together;
    for (const std::string& line : wrap(text, width)) {
      EXPECT_LE(columns_of(line), width) << line;
      EXPECT_EQ(utf8_valid_prefix(line), line.size()) << line;
      together += line;
    }
    EXPECT_EQ(without_spaces(together), without_spaces(text)) << width;
  }
}

TEST(TextLayout, KeepsSomeLinesAndSaysHowManyAreLeftOut) {
  EXPECT_THAT(first_lines({"a", "b", "c", "d"}, 2), ElementsAre("a", "b", "[2 more lines; --full]"));
  EXPECT_THAT(last_lines({"a", "b", "c", "d"}, 2), ElementsAre("[2 earlier lines; --full]", "c", "d"));
  EXPECT_THAT(first_lines({"a", "b", "c"}, 2), ElementsAre("a", "b", "c"));  // a mark would not be shorter
  EXPECT_THAT(last_lines({"a", "b", "c"}, 2), ElementsAre("a", "b", "c"));
  EXPECT_THAT(first_lines({"a", "b"}, 0), ElementsAre("a", "b"));
}

TEST(TextLayout, PadsByColumns) {
  EXPECT_EQ(pad_right("ab", 4), "ab  ");
  EXPECT_EQ(pad_left("ab", 4), "  ab");
  EXPECT_EQ(pad_right("\u4e2d", 4), "\u4e2d  ");  // two columns wide
  EXPECT_EQ(pad_left("abcde", 4), "abcde");
}

}  // namespace
}  // namespace kedge
