#include "cli/text/show_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "kedge/text/unicode/text_layout.h"

#include "tests/support/rollouts.h"

namespace kedge::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

RolloutRow answer(std::string response) {
  RolloutRow row{.rollout = testing::shared(testing::rollout(std::move(response))),
                 .reward = {.value = 1.5, .parts = {{"tone", 1.5}}},
                 .reference = {-1, -1},
                 .kl_mean = 0.25,
                 .advantage = 0.5,
                 .trains = true};
  return row;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(ShowText, AnAnswerHasItsNumbersThenItsPromptThenItsText) {
  EXPECT_EQ(answer_text("  1", answer("Yes.\nNo."), WithPrompt::yes, {}),
            "  1  reward 1.5  advantage +0.5  KL 0.25  2 tokens  prompt 7 answer 0\n"
            "   | Q\n"
            "   > Yes.\n"
            "   > No.\n");
  EXPECT_THAT(answer_text("  1", answer("Yes."), WithPrompt::no, {}), Not(HasSubstr("| Q")));
}

TEST(ShowText, SaysWhyThereIsNoRewardAndWhatWasNotTrainedOn) {
  RolloutRow row = answer("Yes.");
  row.reward = {.error = "tone: HTTP 500\x1b"};
  row.trains = false;
  row.reference.clear();
  EXPECT_EQ(answer_text("  1", row, WithPrompt::no, {}),
            "  1  reward -  2 tokens  not trained on  prompt 7 answer 0\n"
            "     no reward: tone: HTTP 500\\x1b\n"
            "   > Yes.\n");
}

TEST(ShowText, PartsAreShownWhereTheyAreNotTheReward) {
  RolloutRow row = answer("Yes.");
  EXPECT_THAT(answer_text("  1", row, WithPrompt::no, {}), Not(HasSubstr("tone")));
  row.reward.parts[0].second = 3;
  EXPECT_THAT(answer_text("  1", row, WithPrompt::no, {}), HasSubstr("tone 3"));
  row.reward.parts = {{"tone", 1.5}, {"watch/long", 2}};
  EXPECT_THAT(answer_text("  1", row, WithPrompt::no, {.width = 120}), HasSubstr("tone 1.5  watch/long 2\n"));
}

TEST(ShowText, LongTextsAreCutUnlessAllIsWanted) {
  std::string text = "line 1";
  for (int i = 2; i <= 20; ++i) text += "\nline " + std::to_string(i);
  const std::string answer = marked_text('>', text, {});
  EXPECT_THAT(answer, ::testing::StartsWith("   > line 1\n"));
  EXPECT_THAT(answer, ::testing::EndsWith("   > line 8\n   > [12 more lines; --full]\n"));
  EXPECT_EQ(marked_text('|', text, {}), "   | [17 earlier lines; --full]\n   | line 18\n   | line 19\n   | line 20\n");
  EXPECT_EQ(lines_of(marked_text('>', text, {.full = true})).size(), 20U);
  EXPECT_EQ(marked_text('>', "", {}), "   >\n");
}

TEST(ShowText, NoLineIsWiderThanThePage) {
  RolloutRow row =
      answer(std::string(300, 'x') +
             " \u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57 and words that go on and on");
  row.reward.parts = {{std::string(70, 'p'), 1}, {"tone", 1.0 / 3}, {"watch/length", -1234.5}};
  RolloutRow failed = row;
  failed.reward.error = std::string(200, 'e');
  for (size_t width = 20; width <= 120; ++width) {
    const PageLook look{.width = width, .full = true};
    for (const std::string& text : {answer_text("  1", row, WithPrompt::yes, look), answer_text("  1", failed, WithPrompt::yes, look),
                                    pair_text("  1", row, failed, look), heading_text("", step_pieces(numbers_of({{row}})), look),
                                    remark_text("5 more; --limit 0 shows all", look)})
      for (const std::string& line : lines_of(text)) EXPECT_LE(columns_of(line), width) << line;
  }
}

TEST(ShowText, ColoursStandAroundWholeLines) {
  const PageLook look{.colour = true};
  EXPECT_EQ(marked_text('-', "a\nb", look), "\x1b[31m   - a\x1b[0m\n\x1b[31m   - b\x1b[0m\n");
  EXPECT_THAT(answer_text("  1", answer("Yes."), WithPrompt::yes, look), HasSubstr("\x1b[2m   | Q\x1b[0m\n   > Yes.\n"));
}

TEST(ShowText, APairHasBothAnswersOrTheOneTheyAre) {
  RolloutRow better = answer("Better.");
  better.reward.value = 2;
  EXPECT_EQ(pair_text("  1", answer("Yes."), better, {}),
            "  1  reward 1.5 -> 2 (+0.5)  KL 0.25 -> 0.25  2 -> 2 tokens  prompt 7 answer 0\n"
            "   | Q\n"
            "   - Yes.\n"
            "   + Better.\n");
  EXPECT_THAT(pair_text("  1", answer("Yes."), answer("Yes."), {}), HasSubstr("reward 1.5 -> 1.5  KL"));
  EXPECT_THAT(pair_text("  1", answer("Yes."), answer("Yes."), {}), ::testing::EndsWith("   | Q\n   = Yes.\n"));
  const RolloutRows first = {answer("a"), answer("b")}, second = {better, answer("b")};
  const std::vector<AnswerPair> pairs = pair_answers(first, second);
  EXPECT_THAT(pairs_pieces(pairs, first, second), ElementsAre("2 pairs, 1 differ", "reward 1.5 -> 1.75 (+0.25)", "1 better, 0 worse"));
}

TEST(ShowText, TheTableOfStepsStandsInColumns) {
  const RolloutRows rows = {answer("a"), answer("b")};
  const std::string heading = steps_heading({}), line = steps_line(7, numbers_of(rows)), empty = steps_line(8, numbers_of({}));
  EXPECT_EQ(heading, "  step answers    reward      sd     min     max         KL length ended failed\n");
  EXPECT_EQ(line, "     7       2       1.5       0     1.5     1.5       0.25      2 100 %      0\n");
  EXPECT_EQ(empty, "     8       0         -       -       -       -          -      -     -      0\n");
}

}  // namespace
}  // namespace kedge::cli
