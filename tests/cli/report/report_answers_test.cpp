#include "cli/report/report_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/rollouts.h"

namespace kedge::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

RolloutRow row_of(double reward, const std::string& prompt = "Q", const std::string& response = "A") {
  Rollout rollout{.ids = TokenIds(2, 1), .prompt_length = 1, .finished = true, .prompt = prompt, .response = response};
  return {.rollout = testing::shared(std::move(rollout)), .reward = {.value = reward}};
}

RolloutRows rows_of(const std::vector<double>& rewards) {
  RolloutRows rows;
  for (const double reward : rewards) rows.push_back(row_of(reward));
  return rows;
}

TEST(ReportAnswers, TheBestTheMiddleAndTheWorst) {
  const TypicalAnswers typical = typical_answers(rows_of({5, 1, 9, 7, 3, 8, 2, 6, 4}), 2);
  EXPECT_THAT(typical.best, ElementsAre(2, 5));
  EXPECT_THAT(typical.middle, ElementsAre(7, 0));  // 6 and 5 of nine
  EXPECT_THAT(typical.worst, ElementsAre(1, 6));
}

TEST(ReportAnswers, OtherPromptsComeFirst) {
  const RolloutRows rows = {row_of(9, "a"), row_of(8, "a"), row_of(7, "b"), row_of(5, "a"), row_of(2, "b"), row_of(1, "b")};
  const TypicalAnswers typical = typical_answers(rows, 2);
  EXPECT_THAT(typical.best, ElementsAre(0, 2));
  EXPECT_THAT(typical.worst, ElementsAre(5, 3));
  EXPECT_THAT(typical.middle, ElementsAre(1, 4));  // what is left
}

TEST(ReportAnswers, NoAnswerStandsTwice) {
  const TypicalAnswers two = typical_answers(rows_of({1, 2}), 3);
  EXPECT_THAT(two.best, ElementsAre(1));
  EXPECT_THAT(two.middle, IsEmpty());
  EXPECT_THAT(two.worst, ElementsAre(0));
  const TypicalAnswers one = typical_answers(rows_of({1}), 3);
  EXPECT_THAT(one.best, ElementsAre(0));
  EXPECT_THAT(one.worst, IsEmpty());
  EXPECT_THAT(typical_answers({}, 3).best, IsEmpty());
}

TEST(ReportAnswers, AnswersWithoutARewardAreNotRanked) {
  RolloutRows rows = rows_of({1, std::nan(""), 3});
  rows.push_back(row_of(100));
  rows.back().reward.error = "no reply";
  const TypicalAnswers typical = typical_answers(rows, 1);
  EXPECT_THAT(typical.best, ElementsAre(2));
  EXPECT_THAT(typical.worst, ElementsAre(0));
}

TEST(ReportAnswers, TextsOfARunAreText) {
  const RolloutRows rows = {row_of(1, "<b>Q</b>", "</div><script>alert(1)</script>\xff")};
  const std::string html = step_html(7, rows);
  EXPECT_THAT(html, AllOf(HasSubstr("Answers of step 7"), HasSubstr("&lt;b&gt;Q&lt;/b&gt;"), HasSubstr("\xef\xbf\xbd")));
  EXPECT_THAT(html, AllOf(Not(HasSubstr("<script>")), Not(HasSubstr("<b>"))));
  EXPECT_THAT(html, HasSubstr("<span>reward 1</span>"));
}

TEST(ReportAnswers, OfALongTextTheRestIsFoldedAway) {
  std::string text;
  while (text.size() < 4000) text += "\xc3\xa9t\xc3\xa9 ";  // characters of two bytes, which must not be cut in two
  const std::string html = step_html(0, RolloutRows{row_of(1, "Q", text)});
  EXPECT_THAT(html, AllOf(HasSubstr("<details><summary>and "), Not(HasSubstr("\xef\xbf\xbd"))));
}

TEST(ReportAnswers, RisesAndFallsOfTheSamePrompts) {
  BeforeAfter both;
  for (const double before : {1.0, 2.0, 3.0, 4.0, 5.0}) {
    both.before.rows.push_back(row_of(before, "Q" + std::to_string(int(before)), "old"));
    both.after.rows.push_back(row_of(before == 5.0 ? 1 : 5, "Q" + std::to_string(int(before)), "new"));
  }
  both.before.steps = {0, 0, 0, 0, 1};
  both.after.steps = {8, 8, 8, 8, 9};
  both.pairs = pair_answers(both.before.rows, both.after.rows);
  const std::string html = before_after_html(both);
  EXPECT_THAT(html, HasSubstr("5 answers to prompts that came again: reward 3 before, 4.2 after; higher in 4, lower in 1, equal in 0."));
  const size_t most = html.find(">Q1<"), next = html.find(">Q2<"), middle = html.find(">Q3<"), fell = html.find(">Q5<");
  EXPECT_LT(most, next);
  EXPECT_LT(next, middle);
  EXPECT_LT(middle, fell);
  EXPECT_LT(html.find("Fell most"), fell);
  EXPECT_EQ(html.find(">Q4<"), std::string::npos);
  EXPECT_THAT(html, AllOf(HasSubstr("<span>step 1</span><span>reward 5</span>"), HasSubstr("<span>step 9</span><span>reward 1</span>")));
}

TEST(ReportAnswers, NoPromptCameAgain) { EXPECT_EQ(before_after_html({}), ""); }

TEST(ReportAnswers, SamplesShowTheirTextsAndNumbers) {
  const std::vector<Json> samples = {
      Json::parse(R"({"step": 4, "time": 99.5, "table": "validation", "prompt": "Q<", "response": "A", "wanted": "B", "reward": 1.5})")};
  const std::string html = samples_html(samples);
  EXPECT_THAT(html, AllOf(HasSubstr("<span>step 4</span>"), HasSubstr("<span>reward 1.5</span>"), HasSubstr("Q&lt;"), HasSubstr(">B<")));
  EXPECT_THAT(html, Not(HasSubstr("99.5")));
  EXPECT_EQ(samples_html({}), "");
}

}  // namespace
}  // namespace kedge::cli
