#include "kedge/text/unicode/normal_form.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

TEST(NormalForm, ComposesAndDecomposes) {
  EXPECT_EQ(to_normal_form("e\u0301", NormalForm::nfc), "\u00E9");
  EXPECT_EQ(to_normal_form("\u00E9", NormalForm::nfd), "e\u0301");
  EXPECT_EQ(to_normal_form("\uFB01 \u00B2", NormalForm::nfkc), "fi 2");
  EXPECT_EQ(to_normal_form("\uFB01 \u00B2", NormalForm::nfc), "\uFB01 \u00B2");
  EXPECT_EQ(to_normal_form("\u1E9B\u0323", NormalForm::nfkd), "s\u0323\u0307");  // Unicode's own example: marks change places
  EXPECT_EQ(to_normal_form("\u1100\u1161\u11A8", NormalForm::nfc), "\uAC01");    // Hangul
  EXPECT_EQ(to_normal_form(std::string("e\u0301\0e\u0301", 7), NormalForm::nfc), std::string("\u00E9\0\u00E9", 5));
}

TEST(NormalForm, LeavesWhatIsNewerThanUnicodeNine) {
  // U+10D24 (class 230, Unicode 11) would change places with U+0323 (class 220) today; the package lets it stand.
  EXPECT_EQ(to_normal_form("a\U00010D24\u0323", NormalForm::nfd), "a\U00010D24\u0323");
  EXPECT_EQ(to_normal_form("a\u0301\u0323", NormalForm::nfd), "a\u0323\u0301");
  EXPECT_EQ(to_normal_form("\u32FF", NormalForm::nfkc), "\u32FF");  // the square era name Reiwa, Unicode 12.1
}

TEST(NormalForm, KeepsATrailingConsonantThatIsNone) { EXPECT_EQ(to_normal_form("\uD398\u11A7", NormalForm::nfc), "\uD398\u11A7"); }

TEST(NormalForm, LowersCharacterByCharacter) {
  EXPECT_EQ(to_lower_case("AbC \u00C9 \u03A3"), "abc \u00E9 \u03C3");  // no final sigma
  EXPECT_EQ(to_lower_case("\u0130"), "i\u0307");
  EXPECT_EQ(to_lower_case("\u1E9E"), "\u00DF");
  EXPECT_EQ(to_lower_case("\u1C89\U00010D50"), "\u1C8A\U00010D70");  // Unicode 16
}

TEST(NormalForm, MeasuresGraphemes) {
  EXPECT_EQ(grapheme_length("ab"), 1U);
  EXPECT_EQ(grapheme_length("e\u0301x"), 3U);
  EXPECT_EQ(grapheme_length("\r\nx"), 2U);
  EXPECT_EQ(grapheme_length("\U0001F468\u200D\U0001F469!"), 11U);  // a family, joined
}

}  // namespace
}  // namespace kedge
