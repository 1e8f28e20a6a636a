#include "kedge/reward/math/math_words.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

TEST(MathWords, TextsAreComparedWithoutCaseAndPunctuation) {
  EXPECT_EQ(comparable_text("  No\n solution. "), "no solution");
  EXPECT_EQ(comparable_text("(B)"), "b");
  EXPECT_EQ(comparable_text(" .,"), "");
}

TEST(MathWords, AChoiceIsOneLetter) {
  EXPECT_EQ(choice_letter("(B)"), 'B');
  EXPECT_EQ(choice_letter("B."), 'B');
  EXPECT_EQ(choice_letter("AB"), std::nullopt);
  EXPECT_EQ(choice_letter("B2"), std::nullopt);
  EXPECT_EQ(choice_letter(""), std::nullopt);
}

TEST(MathWords, AndAndOrSeparate) {
  const auto separates = [](const char* text) { return is_list_separator(math_tokens(text)->front()); };
  for (const char* text : {",", ";", "and", "or", R"(\text{ and })", R"(\text{, or})"}) EXPECT_TRUE(separates(text)) << text;
  for (const char* text : {"x", "5", "=", R"(\text{cm})"}) EXPECT_FALSE(separates(text)) << text;
}

TEST(MathWords, UnitsFollowNumbers) {
  const auto starts = [](const char* text, bool number, bool symbol) { return starts_unit(math_tokens(text)->at(1), number, symbol); };
  EXPECT_TRUE(starts("5cm", true, false));
  EXPECT_TRUE(starts("5 apples", true, false));
  EXPECT_TRUE(starts("5 m", true, false));
  EXPECT_TRUE(starts(R"(x\text{ cm})", false, true));
  EXPECT_FALSE(starts("5m", true, false));
  EXPECT_FALSE(starts("5ab", true, false));
  EXPECT_FALSE(starts("5 and", true, false));
  EXPECT_FALSE(starts("5 x", true, false));
}

TEST(MathWords, SomeWordsAreFactors) {
  const auto scale = [](const char* text) { return scale_word(math_tokens(text)->front()); };
  EXPECT_EQ(scale("thousand"), 1000);
  EXPECT_EQ(scale(R"(\text{ million dollars})"), 1000000);
  EXPECT_EQ(scale(R"(\text{ millions})"), 0);
  EXPECT_EQ(scale("5"), 0);
}

TEST(MathWords, ATextAnswerIsWordsAlone) {
  const auto is_text = [](const char* text) { return is_text_answer(*math_tokens(text)); };
  for (const char* text : {"Evelyn", "no solution", R"(\text{even})", "yes", "It is so."}) EXPECT_TRUE(is_text(text)) << text;
  for (const char* text : {"xy", "x", "5 apples", "x = even", R"(\text{B})", "pi", "A and C"}) EXPECT_FALSE(is_text(text)) << text;
}

}  // namespace
}  // namespace kedge
