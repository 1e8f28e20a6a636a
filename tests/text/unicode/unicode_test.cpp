#include "kedge/text/unicode/unicode.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

TEST(Unicode, KnowsTheCategoryOfOldAndNewCharacters) {
  const CharTable& table = char_table();
  EXPECT_EQ(table.category('A'), Category::Lu);
  EXPECT_EQ(table.category('z'), Category::Ll);
  EXPECT_EQ(table.category(0x01C5), Category::Lt);  // Dz with caron
  EXPECT_EQ(table.category(0x4E00), Category::Lo);
  EXPECT_EQ(table.category(0x0301), Category::Mn);
  EXPECT_EQ(table.category('7'), Category::Nd);
  EXPECT_EQ(table.category(0x2167), Category::Nl);  // Roman eight
  EXPECT_EQ(table.category('_'), Category::Pc);
  EXPECT_EQ(table.category('$'), Category::Sc);
  EXPECT_EQ(table.category(0x1F600), Category::So);
  EXPECT_EQ(table.category(' '), Category::Zs);
  EXPECT_EQ(table.category(0), Category::Cc);
  EXPECT_EQ(table.category(0xE000), Category::Co);
  EXPECT_EQ(table.category(0x10FFFF), Category::Cn);
  EXPECT_EQ(table.category(0x1C89), Category::Lu);   // Cyrillic, Unicode 16
  EXPECT_EQ(table.category(0x323AF), Category::Lo);  // the last ideograph of Unicode 15
}

TEST(Unicode, CountsTwentyFiveSpaces) {
  int count = 0;
  for (char32_t code = 0; code < kNumCodePoints; ++code) count += char_table().is_space(code) ? 1 : 0;
  EXPECT_EQ(count, 25);
  EXPECT_TRUE(char_table().is_space(0x85));
  EXPECT_FALSE(char_table().is_space(0x180E)) << "a space once, none since Unicode 6.3";
  EXPECT_FALSE(char_table().is_space(0x200B));
}

TEST(Unicode, PunctuationIsAllOfAsciiAndThatOfUnicodeEight) {
  for (const char c : std::string_view("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"))
    EXPECT_TRUE(char_table().is_punctuation(static_cast<unsigned char>(c))) << c;
  EXPECT_FALSE(char_table().is_punctuation('a'));
  EXPECT_FALSE(char_table().is_punctuation(' '));
  EXPECT_FALSE(char_table().is_punctuation(0x7F));
  EXPECT_TRUE(char_table().is_punctuation(0x3002));   // ideographic full stop
  EXPECT_FALSE(char_table().is_punctuation(0x2E43));  // Unicode 9
  EXPECT_TRUE(char_table().is_punctuation(0x166D));   // a symbol today
}

TEST(Unicode, WordsHoldLettersMarksDigitsConnectorsAndJoiners) {
  for (const char32_t code : {U'a', U'7', U'_', U'\u0301', U'\u2167', U'\u200D', U'\u24B6', U'語'})
    EXPECT_TRUE(char_table().is_word(code)) << static_cast<uint32_t>(code);
  for (const char32_t code : {U'-', U' ', U'\u00B2', U'\U0001F600'})
    EXPECT_FALSE(char_table().is_word(code)) << static_cast<uint32_t>(code);
}

TEST(Unicode, AccentsAreMarksOfUnicodeNine) {
  EXPECT_TRUE(char_table().is_accent(0x0301));
  EXPECT_FALSE(char_table().is_accent(0x1DF6)) << "a mark since Unicode 10";
  EXPECT_TRUE(char_table().is_accent(0x1CF2)) << "a mark until Unicode 11";
  EXPECT_FALSE(char_table().is_accent('a'));
}

TEST(Unicode, SaysWhichTextIsInFormForSure) {
  EXPECT_TRUE(surely_in_form("plain", NormalForm::nfkd));
  EXPECT_TRUE(surely_in_form("d\xC3\xA9j\xC3\xA0 \xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x98\x80", NormalForm::nfc));
  EXPECT_FALSE(surely_in_form("e\xCC\x81", NormalForm::nfc));
  EXPECT_FALSE(surely_in_form("\xC3\xA9", NormalForm::nfd));
  EXPECT_FALSE(surely_in_form("\xC2\xB2", NormalForm::nfkc));
}

}  // namespace
}  // namespace kedge
