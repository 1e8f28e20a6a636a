#include "kedge/reward/reward_rules.h"

#include <gtest/gtest.h>

#include <sstream>

#include "kedge/core/files.h"
#include "kedge/text/unicode/regex.h"

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/rollouts.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::rollout;

double value_of(const RewardRule& rule, const Rollout& rollout) {
  const RowReward reward = rule(rollout);
  EXPECT_EQ(reward.error, "");
  return reward.value;
}

TEST(RewardRules, ARegexIsFoundOrCounted) {
  if (!has_regex()) GTEST_SKIP() << "built without PCRE2";
  EXPECT_EQ(value_of(regex_rule("cats?", RegexUse::match, "here"), rollout("a cat, two cats")), 1);
  EXPECT_EQ(value_of(regex_rule("cats?", RegexUse::count, "here"), rollout("a cat, two cats")), 2);
  EXPECT_EQ(value_of(regex_rule("cats?", RegexUse::match, "here"), rollout("a dog")), 0);
  EXPECT_EQ(value_of(regex_rule("cats?", RegexUse::count, "here"), rollout("")), 0);
  EXPECT_EQ(value_of(regex_rule("(?i)^the end$", RegexUse::match, "here"), rollout("The END")), 1);
  EXPECT_EQ(value_of(regex_rule("x.y", RegexUse::match, "here"), rollout("x\xFFy")), 1);  // what is no UTF-8 is one character
  EXPECT_EQ(testing::error_of([] { return regex_rule("(", RegexUse::match, "reward.sources.a.pattern"); }),
            "reward.sources.a.pattern: the expression ( is wrong at byte 1: missing closing parenthesis");
}

TEST(RewardRules, ATextThatAnExpressionGivesUpOnIsAFailedRow) {
  if (!has_regex()) GTEST_SKIP() << "built without PCRE2";
  const RowReward reward = regex_rule("^(a|a?)+$", RegexUse::match, "here")(rollout(std::string(5000, 'a') + "b"));
  EXPECT_EQ(reward.error.substr(0, 56), "prompt 7: a regular expression gave up on this text: mat") << reward.error;
}

TEST(RewardRules, AFormatIsThatOfTheWholeAnswer) {
  if (!has_regex()) GTEST_SKIP() << "built without PCRE2";
  const RewardRule rule = format_rule("<think>.*</think>\\s*<answer>.*</answer>", {.correct = 0.5, .wrong = -1}, "here");
  EXPECT_EQ(value_of(rule, rollout("<think>1\n2</think>\n<answer>3</answer>")), 0.5);
  EXPECT_EQ(value_of(rule, rollout("So: <think>1</think><answer>3</answer>")), -1);
  EXPECT_EQ(value_of(rule, rollout("<think>1</think><answer>3</answer> Done.")), -1);
}

TEST(RewardRules, ALexiconSumsTheAnswerAndNotThePrompt) {
  const testing::TempFolder folder;
  const RewardRule rule = lexicon_rule(folder.file("words.txt", "good\t2\nbad\t-1.5\n"));
  Rollout one = rollout("Good, good and bad.");
  one.prompt = "good";
  EXPECT_EQ(value_of(rule, one), 2.5);
}

TEST(RewardRules, ANumberIsComparedWithTheRows) {
  const RewardRule rule = number_rule({});
  EXPECT_EQ(value_of(rule, rollout("It is $1,072.", R"({"answer": 1072})")), 1);
  EXPECT_EQ(value_of(rule, rollout("It is 72.0 or so", R"({"answer": "48/2 = <<48/2=24>>24 clips.\n#### 72"})")), 1);
  EXPECT_EQ(value_of(rule, rollout("24 #### 72 24", R"({"answer": "72"})")), 1);
  EXPECT_EQ(value_of(rule, rollout("It is 71", R"({"answer": "72"})")), 0);
  EXPECT_EQ(value_of(rule, rollout("No idea", R"({"answer": "72"})")), 0);
  const RewardRule other = number_rule({.field = "solution", .place = AnswerPlace::boxed, .tolerance = 0.01, .marks = {2, -1}});
  EXPECT_EQ(value_of(other, rollout(R"(\boxed{3.14} 7)", R"({"solution": 3.1416})")), 2);
  EXPECT_EQ(value_of(other, rollout("3.1416", R"({"solution": 3.1416})")), -1);
  EXPECT_EQ(value_of(other, rollout(R"(\boxed{1009})", R"({"solution": 1000})")), 2);  // one in a hundred
  EXPECT_EQ(value_of(other, rollout(R"(\boxed{1011})", R"({"solution": 1000})")), -1);
}

// The rule of examples/gsm8k on every problem of the collection: its own solution is right, in the words of the collection or boxed; a
// number beside it, and an answer without one, are wrong.
TEST(RewardRules, TheSolutionsOfRealProblemsAreRightAndWrongOnesAreNot) {
  KEDGE_NEEDS_ASSET("prompts/gsm8k/train.jsonl");
  const RewardRule rule = number_rule({});
  int64_t count = 0;
  for (const char* file : {"prompts/gsm8k/train.jsonl", "prompts/gsm8k/test.jsonl"}) {
    std::istringstream lines(read_text(testing::asset(file)));
    for (std::string line; std::getline(lines, line); ++count) {
      const std::string solution = Json::parse(line).at("answer", line).as_text(line);
      const size_t hashes = solution.rfind("#### ");
      ASSERT_NE(hashes, std::string::npos) << line;
      const std::string number = solution.substr(hashes + 5), steps = solution.substr(0, hashes);
      EXPECT_EQ(value_of(rule, rollout(solution, line)), 1) << line;
      EXPECT_EQ(value_of(rule, rollout(steps + "\\boxed{" + number + "}", line)), 1) << line;
      EXPECT_EQ(value_of(rule, rollout(steps + "So the answer is " + number + ".", line)), 1) << line;
      EXPECT_EQ(value_of(rule, rollout(steps + "#### " + number + "1", line)), 0) << line;
      EXPECT_EQ(value_of(rule, rollout(steps + "#### 9" + number, line)), 0) << line;
      EXPECT_EQ(value_of(rule, rollout("No number at all", line)), 0) << line;
    }
  }
  EXPECT_EQ(count, 7473 + 1319);
}

TEST(RewardRules, AMathAnswerIsComparedByValue) {
  const RewardRule rule = math_rule({.marks = {2, -1}});
  EXPECT_EQ(value_of(rule, rollout(R"(So \boxed{\frac{1}{2}}.)", R"({"answer": 0.5})")), 2);
  EXPECT_EQ(value_of(rule, rollout("#### 1,072", R"({"answer": "48/2 = <<48/2=24>>24 clips.\n#### 1072"})")), 2);
  EXPECT_EQ(value_of(rule, rollout("The answer is 3.", R"({"reward_model": {"style": "rule", "ground_truth": "3"}})")), 2);
  EXPECT_EQ(value_of(rule, rollout("The answer is 4.", R"({"solution": ["\\boxed{3}", "\\boxed{4}"]})")), 2);
  EXPECT_EQ(value_of(rule, rollout("The answer is 5.", R"({"solution": ["\\boxed{3}", "\\boxed{4}"]})")), -1);
  EXPECT_EQ(value_of(rule, rollout("No idea", R"({"answer": "72"})")), -1);
  EXPECT_EQ(value_of(rule, rollout("", R"({"answer": "72"})")), -1);
  EXPECT_EQ(value_of(math_rule({.place = AnswerPlace::boxed}), rollout("72", R"({"answer": "72"})")), 0);
  EXPECT_EQ(value_of(math_rule({.tolerance = 0.1}), rollout("3.14", R"({"answer": "\\pi"})")), 1);
  EXPECT_EQ(value_of(math_rule({.field = "extra.truth"}), rollout("7", R"({"extra": {"truth": "7"}})")), 1);
}

TEST(RewardRules, ARightAnswerThatCannotBeReadFails) {
  EXPECT_EQ(math_rule({})(rollout("1", R"({"answer": "\\frac{1"})")).error,
            "prompt 7: the field \"answer\" of its row holds no answer that can be compared: \"\\\\frac{1\"");
  EXPECT_EQ(math_rule({})(rollout("1", R"({"reward_model": {"ground_truth": "1+"}})")).error,
            "prompt 7: the field \"reward_model.ground_truth\" of its row holds no answer that can be compared: \"1+\"");
  EXPECT_EQ(math_rule({})(rollout("1", R"({"answer": ""})")).error,
            "prompt 7: the field \"answer\" of its row holds no answer that can be compared: \"\"");
  EXPECT_EQ(math_rule({})(rollout("1", R"({"text": "Q"})")).error, "prompt 7: its row has no field \"answer\"; it has text");
}

TEST(RewardRules, ARowWithoutItsFieldFailsAndIsNotZero) {
  const auto error = [](const RewardRule& rule, const Rollout& rollout) {
    const RowReward reward = rule(rollout);
    EXPECT_TRUE(reward.failed());
    return reward.error;
  };
  EXPECT_EQ(error(number_rule({}), rollout("1", R"({"text": "Q", "label": 1})")),
            "prompt 7: its row has no field \"answer\"; it has text, label");
  EXPECT_EQ(error(number_rule({}), rollout("1", "{}")), "prompt 7: its row has no field \"answer\"; it has none");
  EXPECT_EQ(error(number_rule({}), rollout("1", R"({"answer": null})")), "prompt 7: the field \"answer\" of its row is null");
  EXPECT_EQ(error(number_rule({}), rollout("1")), "prompt 7: its row has no field \"answer\": there is no row");
  EXPECT_EQ(error(number_rule({}), rollout("1", R"({"answer": "many"})")),
            "prompt 7: the field \"answer\" of its row holds no number: \"many\"");
  EXPECT_EQ(error(exact_rule({.field = "label"}), rollout("1", R"({"label": {"a": 1}})")),
            "prompt 7: the field \"label\" of its row must be text or a list of texts, found {\"a\": 1}");
  EXPECT_EQ(error(exact_rule({.field = "label"}), rollout("1", R"({"label": []})")),
            "prompt 7: the field \"label\" of its row is an empty list");
}

TEST(RewardRules, AnExactAnswerIsTheRowsText) {
  const RewardRule plain = exact_rule({});
  EXPECT_EQ(value_of(plain, rollout(" Paris\n", R"({"answer": "Paris "})")), 1);
  EXPECT_EQ(value_of(plain, rollout("paris", R"({"answer": "Paris"})")), 0);
  EXPECT_EQ(value_of(plain, rollout("Paris", R"({"answer": ["Lutetia", "Paris"]})")), 1);
  EXPECT_EQ(value_of(plain, rollout("Rome", R"({"answer": ["Lutetia", "Paris"]})")), 0);
  EXPECT_EQ(value_of(plain, rollout("4", R"({"answer": 4})")), 1);
  const RewardRule loose = exact_rule({.ignore_case = true, .collapse_spaces = true}, {5, -5});
  EXPECT_EQ(value_of(loose, rollout("NEW \n\u00A0 york", R"({"answer": "New York"})")), 5);
  EXPECT_EQ(value_of(loose, rollout("\u00C9TE", R"({"answer": "\u00e9te"})")), 5);
  EXPECT_EQ(value_of(loose, rollout("newyork", R"({"answer": "New York"})")), -5);
}

TEST(RewardRules, AnAnswerMayContainTheRowsText) {
  const RewardRule plain = contains_rule({});
  EXPECT_EQ(value_of(plain, rollout("It is beside the lighthouse.", R"({"answer": " beside the lighthouse"})")), 1);
  EXPECT_EQ(value_of(plain, rollout("Beside the lighthouse.", R"({"answer": "beside the lighthouse"})")), 0);
  EXPECT_EQ(value_of(plain, rollout("It is on the pier.", R"({"answer": ["in the lane", "on the pier"]})")), 1);
  EXPECT_EQ(value_of(plain, rollout("Take 42 steps", R"({"answer": 42})")), 1);
  EXPECT_EQ(value_of(plain, rollout("", R"({"answer": "x"})")), 0);
  const RewardRule loose = contains_rule({.field = "label", .ignore_case = true, .collapse_spaces = true}, {2, -1});
  EXPECT_EQ(value_of(loose, rollout("Beside\n the lighthouse.", R"({"label": "beside the lighthouse"})")), 2);
  EXPECT_EQ(value_of(loose, rollout("Behind it.", R"({"label": "beside the lighthouse"})")), -1);
  EXPECT_EQ(contains_rule({})(rollout("1", R"({"text": "Q"})")).error, "prompt 7: its row has no field \"answer\"; it has text");
}

TEST(RewardRules, AnOverlapIsTheShareOfCharactersInTheirPlace) {
  const RewardRule plain = overlap_rule({});
  EXPECT_EQ(value_of(plain, rollout("221100", R"({"answer": "221100"})")), 1);
  EXPECT_EQ(value_of(plain, rollout("001122", R"({"answer": "221100"})")), 2.0 / 6);
  EXPECT_EQ(value_of(plain, rollout("22", R"({"answer": "221100"})")), 2.0 / 6);        // the rest is missing
  EXPECT_EQ(value_of(plain, rollout("22110000", R"({"answer": "221100"})")), 6.0 / 8);  // and here there is too much
  EXPECT_EQ(value_of(plain, rollout("122110", R"({"answer": "221100"})")), 3.0 / 6);    // places count, not the order alone
  EXPECT_EQ(value_of(plain, rollout(" 42\n", R"({"answer": 42})")), 1);
  EXPECT_EQ(value_of(plain, rollout("", R"({"answer": "221100"})")), 0);
  EXPECT_EQ(value_of(plain, rollout(" ", R"({"answer": ""})")), 1);
  EXPECT_EQ(value_of(plain, rollout("abcd", R"({"answer": ["xbxx", "abxx", "xxxx"]})")), 0.5);
  EXPECT_EQ(value_of(plain, rollout("\u00E9t\u00E8", R"({"answer": "\u00e9t\u00e9"})")), 2.0 / 3);  // characters, not bytes
  EXPECT_EQ(value_of(plain, rollout("Ab", R"({"answer": "aB"})")), 0);
  const RewardRule loose = overlap_rule({.field = "label", .ignore_case = true, .collapse_spaces = true});
  EXPECT_EQ(value_of(loose, rollout("A \n B", R"({"label": "a b"})")), 1);
  EXPECT_EQ(overlap_rule({})(rollout("1", R"({"text": "Q"})")).error, "prompt 7: its row has no field \"answer\"; it has text");
}

TEST(RewardRules, LengthIsCountedInItsUnit) {
  Rollout one = rollout("\u00E9t\u00E9, hot\n days");
  one.ids = {1, 2, 3, 4, 5, 6};
  one.prompt_length = 2;
  EXPECT_EQ(value_of(length_rule({}), one), 4);
  EXPECT_EQ(value_of(length_rule({.unit = LengthUnit::characters}), one), 14);
  EXPECT_EQ(value_of(length_rule({.unit = LengthUnit::words}), one), 3);
  EXPECT_EQ(value_of(length_rule({.target = 5}), one), -0.2);
  EXPECT_EQ(value_of(length_rule({.target = 2}), one), -1);
  EXPECT_EQ(value_of(length_rule({.limit = 4}), one), 0);
  EXPECT_EQ(value_of(length_rule({.limit = 2}), one), -1);
  EXPECT_EQ(value_of(length_rule({.limit = 2, .window = 8}), one), -0.25);
}

// DAPO's: 0 up to L - C, then (L - C - length) / C, and -1 from L on.
TEST(RewardRules, ASoftLengthPenaltyFallsToMinusOne) {
  const RewardRule rule = length_rule({.max_length = 20, .window = 8});
  const auto penalty = [&](size_t length) {
    Rollout one = rollout("x");
    one.ids.assign(length + 1, 5);
    one.prompt_length = 1;
    return value_of(rule, one);
  };
  EXPECT_EQ(penalty(1), 0);
  EXPECT_EQ(penalty(12), 0);
  EXPECT_EQ(penalty(13), -0.125);
  EXPECT_EQ(penalty(16), -0.5);
  EXPECT_EQ(penalty(20), -1);
  EXPECT_EQ(penalty(40), -1);
}

}  // namespace
}  // namespace kedge
