#include "kedge/reward/math/math_answer.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "kedge/core/error.h"
#include "kedge/core/files.h"
#include "kedge/core/json.h"

#include "tests/support/assets.h"

namespace kedge {
namespace {

bool is_right(std::string_view response, std::string_view truth) {
  const auto right = RightMathAnswer::of(truth);
  EXPECT_TRUE(right.has_value()) << truth;
  const auto found = math_answer(response);
  return right && found && right->is(*found);
}

std::optional<std::string> math_answer_text(std::string_view response, AnswerPlace place = AnswerPlace::any) {
  const auto found = math_answer(response, place);
  return found ? std::optional(found->text) : std::nullopt;
}

TEST(MathAnswer, IsTakenFromTheFirstPlaceThatTheResponseHas) {
  const std::string all = R"(\boxed{1} then #### 2 and the answer is 3. Also $4$ or 5)";
  EXPECT_EQ(math_answer_text(all), "1");
  EXPECT_EQ(math_answer_text(all, AnswerPlace::hashes), "2 and the answer is 3. Also $4$ or 5");
  EXPECT_EQ(math_answer_text(all, AnswerPlace::last), "5");
  EXPECT_EQ(math_answer_text("#### 2\nthe answer is 3"), "2");
  EXPECT_EQ(math_answer_text("The answer is 3. Then 4"), "3");
  EXPECT_EQ(math_answer_text("the answer is $x = 3$, of course"), "x = 3");
  EXPECT_EQ(math_answer_text("so 3 and $4$"), "4");
  EXPECT_EQ(math_answer_text("so $4$ and 3"), "3");
  EXPECT_EQ(math_answer_text("so 30%"), "30%");
  EXPECT_EQ(math_answer_text("nothing"), std::nullopt);
  EXPECT_EQ(math_answer_text("5", AnswerPlace::boxed), std::nullopt);
}

TEST(MathAnswer, ARightAnswerIsBareOrEndsASolution) {
  EXPECT_EQ(RightMathAnswer::of(R"(\frac{1}{2})")->text(), R"(\frac{1}{2})");
  EXPECT_EQ(RightMathAnswer::of("Because 1 + 1 = 2.\n#### 2")->text(), "2");
  EXPECT_EQ(RightMathAnswer::of(R"(We get \boxed{(1,2)}.)")->text(), "(1,2)");
  EXPECT_EQ(RightMathAnswer::of("Long words come before it. The answer is 7.")->text(), "7");
  for (const char* truth : {"", "  ", R"(\frac{1)", "because of 1 and so on we see that it is x y = and"})
    EXPECT_FALSE(RightMathAnswer::of(truth)) << truth;
}

// Each pair is also judged by the math-verify package: tests/golden/check_math_pairs.py.
TEST(MathAnswer, JudgesPairsOfOurOwnMaking) {
  const auto file = testing::source_folder() / "tests" / "reward" / "math_pairs.jsonl";
  std::istringstream lines(read_text(file));
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = str(file.string(), ":", ++number);
    const Json pair = Json::parse(line, where);
    EXPECT_EQ(is_right(pair.at("response", where).as_text(where), pair.at("truth", where).as_text(where)),
              pair.at("expected", where).as_bool(where))
        << where << ": " << line;
  }
  EXPECT_GE(number, 300);
}

TEST(MathAnswer, RealAnswersEqualThemselvesAndNotTheirNeighbours) {
  KEDGE_NEEDS_ASSET("prompts/gsm8k");
  int64_t count = 0;
  for (const char* name : {"train", "test"}) {
    std::istringstream lines(read_text(testing::asset(str("prompts/gsm8k/", name, ".jsonl"))));
    for (std::string line; std::getline(lines, line); ++count) {
      const std::string solution = Json::parse(line).at("answer", line).as_text(line);
      const auto right = RightMathAnswer::of(solution);
      ASSERT_TRUE(right.has_value()) << line;
      EXPECT_TRUE(is_right(solution, solution)) << line;
      EXPECT_TRUE(is_right(str("So it is \\boxed{", right->text(), "}."), solution)) << line;
      EXPECT_TRUE(is_right(str("The answer is $", right->text(), ".00"), solution)) << line;
      std::string other = right->text();
      other.back() = other.back() == '9' ? '8' : static_cast<char>(other.back() + 1);
      EXPECT_FALSE(is_right(str("#### ", other), solution)) << line;
      EXPECT_FALSE(is_right(str("#### 1", right->text()), solution)) << line;
      EXPECT_FALSE(is_right(str("#### ", right->text(), ".5"), solution)) << line;
      EXPECT_EQ(is_right(str("#### -(", right->text(), ")"), solution), right->text() == "0") << line;
    }
  }
  EXPECT_EQ(count, 7473 + 1319);
}

// A random fraction in notations that all mean it.
std::vector<std::string> notations(int64_t top, int64_t bottom, int64_t factor) {
  const int64_t whole = top / bottom, rest = top % bottom;
  std::vector<std::string> all = {str(top, "/", bottom),
                                  str("\\frac{", top, "}{", bottom, "}"),
                                  str("\\dfrac{", top * factor, "}{", bottom * factor, "}"),
                                  str("x = ", top, " \\div ", bottom),
                                  str("-\\frac{", -top, "}{", bottom, "}"),
                                  str("\\frac{", top, "}{", bottom, "}\\text{ cm}"),
                                  str(top * 100 / 1, "/", bottom, "\\%"),
                                  str("\\sqrt{\\frac{", top * top, "}{", bottom * bottom, "}}"),
                                  str("\\frac{", top, "\\times 10^{3}}{", bottom, "000}")};
  if (rest != 0 && whole != 0) all.push_back(str(whole, "\\frac{", rest, "}{", bottom, "}"));
  if (10000 % bottom == 0) all.push_back(str(whole, ".", std::to_string(10000 + rest * (10000 / bottom)).substr(1)));
  return all;
}

TEST(MathAnswer, RandomFractionsAreEqualInAllTheirNotations) {
  std::mt19937_64 generator(28);
  const auto random = [&](int64_t most) { return static_cast<int64_t>(generator() % static_cast<uint64_t>(most)) + 1; };
  for (int round = 0; round < 300; ++round) {
    const int64_t top = random(5000), bottom = round % 3 == 0 ? (int64_t{1} << random(4)) * 5 : random(99);
    const std::vector<std::string> all = notations(top, bottom, random(20));
    for (const std::string& a : all)
      for (const std::string& b : all) EXPECT_TRUE(RightMathAnswer::of(a)->is({b})) << a << " and " << b;
    for (const std::string& other : notations(top + 1, bottom, random(20))) {
      EXPECT_FALSE(RightMathAnswer::of(all[0])->is({other})) << all[0] << " and " << other;
      EXPECT_FALSE(RightMathAnswer::of(other)->is({all[1]})) << other << " and " << all[1];
    }
  }
}

TEST(MathAnswer, EqualityHasNoDirection) {
  const auto file = testing::source_folder() / "tests" / "reward" / "math_pairs.jsonl";
  std::istringstream lines(read_text(file));
  std::vector<std::string> answers;
  for (std::string line; std::getline(lines, line);) {
    const Json pair = Json::parse(line);
    if (const auto right = RightMathAnswer::of(pair.at("truth", line).as_text(line))) answers.push_back(right->text());
    const auto found = math_answer_text(pair.at("response", line).as_text(line));
    if (found && RightMathAnswer::of(*found)) answers.push_back(*found);
  }
  std::mt19937_64 generator(7);
  for (int i = 0; i < 20'000; ++i) {
    const std::string &a = answers[generator() % answers.size()], &b = answers[generator() % answers.size()];
    const auto left = parse_math(a), right = parse_math(b);
    if (!left || !right) continue;
    EXPECT_EQ(RightMathAnswer::of(a)->is({b}), RightMathAnswer::of(b)->is({a})) << a << " and " << b;
  }
}

TEST(MathAnswer, NothingHostileTakesLong) {
  const std::vector<std::string> hostile = {std::string(100'000, '('),
                                            "9^{9^{9^{9}}}",
                                            "10^{1000000000000}",
                                            "170!!!!!!",
                                            "\\binom{1000000000}{500000000}",
                                            "\\boxed{" + std::string(3900, '{'),
                                            "\\boxed{" + std::string(3900, '-') + "1}",
                                            "\\sqrt[1000000]{2}",
                                            "1e999999999",
                                            std::string("\\boxed{\0}", 9)};
  for (const std::string& response : hostile) EXPECT_FALSE(is_right(response, "1")) << response.substr(0, 40);
  EXPECT_FALSE(RightMathAnswer::of("9^{9^{9^{9}}}")->is({"9^{9^{9^{8}}}"}));
}

}  // namespace
}  // namespace kedge
