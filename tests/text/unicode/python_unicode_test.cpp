#include "kedge/text/unicode/python_unicode.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

TEST(PythonUnicode, KnowsTheSpacesOfEveryScript) {
  for (const char32_t c : {U' ', U'\t', U'\n', U'\x1C', U'\x85', U'\xA0', U'\u2003', U'\u2028', U'\u3000'})
    EXPECT_TRUE(py_is_space(c)) << uint32_t{c};
  for (const char32_t c : {U'a', U'\u200B', U'\uFEFF', U'\x1B'}) EXPECT_FALSE(py_is_space(c)) << uint32_t{c};
}

TEST(PythonUnicode, TellsLettersDigitsAndNumbersApart) {
  EXPECT_TRUE(py_is_alpha(U'é') && py_is_alpha(U'世') && py_is_alpha(U'ª'));
  EXPECT_FALSE(py_is_alpha(U'1') || py_is_alpha(U'_') || py_is_alpha(U'\U0001F600'));
  EXPECT_TRUE(py_is_decimal(U'٣') && py_is_digit(U'²') && py_is_numeric(U'½') && py_is_numeric(U'三'));
  EXPECT_FALSE(py_is_decimal(U'²') || py_is_digit(U'½') || py_is_alnum(U'-'));
  EXPECT_EQ(py_decimal_value(U'٣'), 3);
  EXPECT_EQ(py_decimal_value(U'\U0001D7FF'), 9);  // the last of five runs of mathematical digits
  EXPECT_EQ(py_decimal_value(U'²'), -1);
}

TEST(PythonUnicode, PrintableIsWhatReprLeavesAsItIs) {
  EXPECT_TRUE(py_is_printable(U' ') && py_is_printable(U'~') && py_is_printable(U'世') && py_is_printable(U'\U0001F600'));
  for (const char32_t c : {U'\n', U'\x7F', U'\xA0', U'\xAD', U'\u200B', U'\u2028', U'\u3000', U'\uE000', U'\uFFFF', U'\U000E0001'})
    EXPECT_FALSE(py_is_printable(c)) << uint32_t{c};
}

TEST(PythonUnicode, CaseMayTakeSeveralCharacters) {
  EXPECT_EQ(py_upper("straße ﬁ ŉ ǆ"), "STRASSE FI ʼN Ǆ");
  EXPECT_EQ(py_lower("ÀÉ İ"), "àé i̇");
  EXPECT_EQ(py_capitalize("ßEN ǆX"), "Ssen ǆx");
  EXPECT_EQ(py_title("ǆx they're ﬁne 3rd"), "ǅx They'Re Fine 3Rd");
  EXPECT_EQ(py_swapcase("aBß"), "AbSS");
}

TEST(PythonUnicode, ASigmaAtTheEndOfAWordIsAnotherLetter) {
  EXPECT_EQ(py_lower("ΟΔΟΣ"), "οδος");
  EXPECT_EQ(py_lower("ΟΔΟΣ."), "οδος.");
  EXPECT_EQ(py_lower("ΣΑΣΑ Σ"), "σασα σ");
}

TEST(PythonUnicode, TitleLettersAreCased) {
  EXPECT_TRUE(py_is_cased(U'ǅ') && py_is_cased(U'ᾈ') && py_is_cased(U'a') && py_is_cased(U'A'));
  EXPECT_FALSE(py_is_cased(U'世') || py_is_cased(U'1'));
  EXPECT_FALSE(py_is_upper(U'ǅ') || py_is_lower(U'ǅ'));
}

TEST(PythonUnicode, StripsAtEitherEnd) {
  EXPECT_EQ(py_strip(" \u3000a b\u00A0\n"), "a b");
  EXPECT_EQ(py_lstrip("\u2028a "), "a ");
  EXPECT_EQ(py_rstrip(" é\u3000"), " é");
  EXPECT_EQ(py_strip(" \t"), "");
}

TEST(PythonUnicode, LineBreaksAreThoseOfSplitlines) {
  for (const char32_t c : {U'\n', U'\r', U'\v', U'\f', U'\x1C', U'\x1E', U'\x85', U'\u2028', U'\u2029'}) EXPECT_TRUE(py_is_line_break(c));
  EXPECT_FALSE(py_is_line_break(U'\x1F') || py_is_line_break(U'\t'));
}

}  // namespace
}  // namespace kedge
