#include "kedge/reward/number_answer.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "kedge/core/files.h"
#include "kedge/core/json.h"

#include "tests/support/assets.h"

namespace kedge {
namespace {

TEST(NumberAnswer, ReadsNumbersAsPeopleWriteThem) {
  const auto expect = [](const char* text, double number) { EXPECT_EQ(answer_number(text, AnswerPlace::last), number) << text; };
  expect("72", 72);
  expect("It is 72.", 72);
  expect("1,234,567.50 dollars", 1234567.5);
  expect("$1,450!", 1450);
  expect("-$5", -5);
  expect("$-5", -5);
  expect("\u22123", -3);
  expect(".5", 0.5);
  expect("2.5e3 metres", 2500);
  expect("2e", 2);
  expect("1, 2, 3", 3);
  expect("1,23", 23);
  expect("7, then 10,0000", 0);  // no group of three, so a number of its own
  expect("3/4 of it", 0.75);
  expect("3/0", 0);
  expect(R"(\frac{3}{4})", 0.75);
  expect(R"(-\dfrac{1}{2})", -0.5);
}

TEST(NumberAnswer, AMinusBehindAnOperandIsNoSign) {
  const auto expect = [](const char* text, double number) { EXPECT_EQ(answer_number(text, AnswerPlace::last), number) << text; };
  expect("10-3", 3);
  expect("x-3", 3);
  expect("(1+1)-3", 3);
  expect("10 - 3", 3);
  expect("10 -3", -3);
  expect("= -3", -3);
}

TEST(NumberAnswer, LooksWhereItIsTold) {
  const std::string text = R"(First 1, then \boxed{x = 2 \text{ m}^{9}} and #### 3 of 4, or 5)";
  EXPECT_EQ(answer_number(text), 2);
  EXPECT_EQ(answer_number(text, AnswerPlace::boxed), 2);
  EXPECT_EQ(answer_number(text, AnswerPlace::hashes), 3);
  EXPECT_EQ(answer_number(text, AnswerPlace::last), 5);
  EXPECT_EQ(answer_number("1 #### 2 #### 3, 4"), 3);
  EXPECT_EQ(answer_number(R"(\boxed{1} \boxed{7)"), 7);
  EXPECT_EQ(answer_number("12", AnswerPlace::hashes), std::nullopt);
  EXPECT_EQ(answer_number("12", AnswerPlace::boxed), std::nullopt);
}

TEST(NumberAnswer, FindsNothingWhereThereIsNothing) {
  EXPECT_EQ(answer_number(""), std::nullopt);
  EXPECT_EQ(answer_number("no idea - $ . ,"), std::nullopt);
  EXPECT_EQ(answer_number("5 #### none"), std::nullopt);  // a marked answer is the answer
}

TEST(NumberAnswer, WhatNoDoubleHoldsEqualsNothing) {
  EXPECT_EQ(answer_number("1e999999"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(answer_number("1e-999999"), 0);
}

// The sum is worked by lexicon_sums.py.
TEST(NumberAnswer, ReadsTheAnswersOfRealProblems) {
  KEDGE_NEEDS_ASSET("prompts/gsm8k/test.jsonl");
  std::istringstream lines(read_text(testing::asset("prompts/gsm8k/test.jsonl")));
  double sum = 0;
  int64_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto number = answer_number(Json::parse(line).at("answer", line).as_text(line));
    ASSERT_TRUE(number.has_value()) << line;
    sum += *number;
  }
  EXPECT_EQ(count, 1319);
  EXPECT_EQ(sum, 9009187);
}

}  // namespace
}  // namespace kedge
