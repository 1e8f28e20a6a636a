#include "kedge/reward/answer_place.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

TEST(AnswerPlace, ABoxKeepsItsInnerBraces) {
  EXPECT_EQ(boxed_text(R"(\boxed{1} and \boxed{\frac{1}{2}}.)"), R"(\frac{1}{2})");
  EXPECT_EQ(boxed_text(R"(\boxed{\{1, 2\}})"), R"(\{1, 2\})");
  EXPECT_EQ(boxed_text(R"(\boxed{\left\}x})"), R"(\left\}x)");
  EXPECT_EQ(boxed_text(R"(\fbox{7} of \boxed {8})"), "8");
  EXPECT_EQ(boxed_text(R"(\boxed{7)"), "7");
  EXPECT_EQ(boxed_text(R"(\boxed{7\)"), R"(7\)");
  EXPECT_EQ(boxed_text("boxed{7}"), std::nullopt);
}

TEST(AnswerPlace, HashesAreFollowedByTheAnswer) {
  EXPECT_EQ(behind_hashes("1 #### 2 #### 3"), " 3");
  EXPECT_EQ(behind_hashes("## 3"), std::nullopt);
}

TEST(AnswerPlace, WordsSayWhatTheAnswerIs) {
  EXPECT_EQ(behind_answer_is("The answer is 5. Not 6."), "5");
  EXPECT_EQ(behind_answer_is("The Answer is: 2.5 m. So"), "2.5 m");
  EXPECT_EQ(behind_answer_is("**Answer:** (B)\nBecause"), "(B)");
  EXPECT_EQ(behind_answer_is("The answer is 1. No, the answer is 2"), "2");
  EXPECT_EQ(behind_answer_is("The answer is 72!\nBecause"), "72");
  EXPECT_EQ(behind_answer_is("The answer is 72!! Great."), "72");
  EXPECT_EQ(behind_answer_is("The answer is 5! = 120. So"), "5! = 120");
  EXPECT_EQ(behind_answer_is("The answer is n!"), "n!");
  EXPECT_EQ(behind_answer_is("The answer is "), std::nullopt);
  EXPECT_EQ(behind_answer_is("It is 5."), std::nullopt);
}

TEST(AnswerPlace, TheLastFormulaIsFoundByItsDelimiters) {
  EXPECT_EQ(last_formula("So $x$ and $y = 2$."), "y = 2");
  EXPECT_EQ(last_formula("So $$x$$ is \\(y\\) or \\[z\\] and"), "z");
  EXPECT_EQ(last_formula("\\[z\\] and then $x$"), "x");
  EXPECT_EQ(last_formula("It costs \\$5 or $5"), std::nullopt);
  EXPECT_EQ(last_formula("\\)"), std::nullopt);
  EXPECT_EQ(last_formula("$$"), std::nullopt);
  EXPECT_EQ(last_formula(""), std::nullopt);
}

}  // namespace
}  // namespace kedge
