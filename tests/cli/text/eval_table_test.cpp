#include "cli/text/eval_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/text/unicode/text_layout.h"

namespace kedge::cli {
namespace {

EvalRow row_of(int64_t step, double reward) {
  EvalRow row{.name = std::to_string(step), .step = step};
  row.answers =
      Metrics{{"rollout_size", 4},  {"generation_length", 12.5}, {"rewards", reward}, {"fraction_of_samples_properly_ended", 0.25},
              {"rewards_std", 1.5}, {"rewards/words", reward},   {"distinct_2", 0.75}};
  row.reward = MeanOfPrompts{.mean = reward, .error = 0.5, .num_prompts = 4};
  row.against = Comparison{.wins = {.mean = 0.625, .error = 0.2, .num_prompts = 4},
                           .interval = {0.224, 0.906},
                           .gain = {.mean = reward - 1, .error = 0.25, .num_prompts = 4}};
  row.kl = 0.015625;
  row.kl_sum = 0.25;
  return row;
}

TEST(EvalTable, ALineAPolicyWithABarOfItsReward) {
  const EvalRows rows = {row_of(0, 1), row_of(10, 3), row_of(20, 2)};
  EXPECT_EQ(eval_table(rows, {.page = {}, .utf8 = false, .marked = 1}).text,
            "  step  reward     +-  win %   95 %     KL  length  ended  dist-2\n"
            "     0   1.000  0.500     63  22-91  0.016   12.50   25 %   0.750\n"
            "*   10   3.000  0.500     63  22-91  0.016   12.50   25 %   0.750  =============\n"
            "    20   2.000  0.500     63  22-91  0.016   12.50   25 %   0.750  =======\n");
}

TEST(EvalTable, BarsHaveEighthsWhereTheLocaleCan) {
  const EvalRows rows = {row_of(0, 0), row_of(1, 1), row_of(2, 4)};
  const std::string text = eval_table(rows, {.page = {.width = 74}, .utf8 = true}).text;
  EXPECT_NE(text.find("0.750  ███████\n"), std::string::npos) << text;
  EXPECT_NE(text.find("0.750  █▊\n"), std::string::npos) << text;  // a quarter of 7 columns are 14 eighths
}

TEST(EvalTable, NoLineIsWiderThanThePage) {
  EvalRow row = row_of(123456, -1234.5);
  for (const char* name : {"rewards/helpful", "rewards/harmless", "watch/length", "watch/another_one"}) row.answers.set(name, 0.5);
  row.passes = {{1, 0.25}, {4, 0.5}, {16, 1}};
  const EvalRows rows = {row_of(0, 1), row};
  for (const size_t width : {30, 50, 60, 80, 100, 120, 200}) {
    const std::string text = eval_table(rows, {.page = {.width = width}}).text;
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin))
      EXPECT_LE(columns_of(text.substr(begin, end - begin)), width) << text;
    EXPECT_NE(text.find("reward"), std::string::npos);
    EXPECT_NE(text.find("win %"), std::string::npos);
  }
  EXPECT_NE(eval_table(rows, {.page = {.width = 200}}).text.find("watch/another_one"), std::string::npos);
  const EvalTable narrow = eval_table(rows, {.page = {.width = 80}});
  EXPECT_EQ(narrow.text.find("dist-2"), std::string::npos) << narrow.text;
  EXPECT_THAT(narrow.left_out, ::testing::Contains("dist-2"));
  EXPECT_TRUE(eval_table(rows, {.page = {.width = 200}}).left_out.empty());
}

TEST(EvalTable, OneSourceAloneIsTheRewardAndHasNoColumn) {
  EXPECT_EQ(eval_table({row_of(0, 1)}, {.page = {.width = 200}}).text.find("words"), std::string::npos);
  EvalRow two = row_of(0, 1);
  two.answers.set("rewards/format", 0.5);
  const std::string text = eval_table({two}, {.page = {.width = 200}}).text;
  EXPECT_NE(text.find("words  format"), std::string::npos) << text;
}

TEST(EvalTable, WhatIsNotThereHasNoColumnOrADash) {
  EvalRow none{.name = "base", .answers = Metrics{{"rollout_size", 2}, {"failed_rewards", 2}}};
  EXPECT_EQ(eval_table({none}, {.page = {}, .names = "policy"}).text, "  policy  failed\n  base         2\n");
  EXPECT_EQ(eval_table({none, row_of(7, 1)}, {.page = {.width = 31}, .names = "policy"}).text,
            "  policy  reward  win %  failed\n  base         -      -       2\n  7        1.000     63       -\n");
  EXPECT_EQ(eval_table({}, {.page = {}}).text, "");
}

TEST(EvalTable, OfALongNameTheEndIsShown) {
  EvalRow row = row_of(0, 1);
  row.name = "/a/very/long/path/to/some/models/tuned";
  const std::string text = eval_table({row}, {.page = {}}).text;
  EXPECT_NE(text.find("\n  .../to/some/models/tuned  "), std::string::npos) << text;
}

TEST(EvalTable, CsvHasEveryDigitAndEveryPolicysSources) {
  EvalRow first = row_of(0, 0.1), second = row_of(5, 1.0 / 3);
  first.name = "models/a,b \"c\"";
  first.step.reset();
  second.answers.set("watch/length", -2);
  second.logged = 0.25;
  second.passes = {{1, 0.5}};
  EXPECT_EQ(
      eval_csv({first, second}),
      "policy,step,reward,reward_se,reward_std,rewards/words,watch/length,win_rate,win_low,win_high,gain,gain_se,pass@1,kl,kl_sum,length,"
      "finished,distinct_2,logged_reward,prompts,answers,failed\n"
      "\"models/a,b \"\"c\"\"\",,0.1,0.5,1.5,0.1,,0.625,0.224,0.906,-0.9,0.25,,0.015625,0.25,12.5,0.25,0.75,,4,4,0\n"
      "5,5,0.3333333333333333,0.5,1.5,0.3333333333333333,-2.0,0.625,0.224,0.906,-0.6666666666666667,0.25,0.5,0.015625,0.25,12.5,0.25,0.75,"
      "0.25,4,4,0\n");
}

TEST(EvalTable, JsonHasNullForWhatIsNotThere) {
  const Json json = eval_json({.name = "x", .answers = Metrics{{"rollout_size", 2}, {"failed_rewards", 2}}});
  for (const char* name : {"step", "reward", "reward_se", "win_rate", "kl", "logged_reward"})
    EXPECT_TRUE(json.at(name, "").is_null()) << name;
  EXPECT_EQ(json.at("answers", ""), Json(2));
  EXPECT_EQ(json.at("failed", ""), Json(2));
  EXPECT_EQ(json.at("prompts", ""), Json(0));
}

TEST(EvalTable, TheBestIsTheFirstOfEqualOnes) {
  EXPECT_EQ(best_of({row_of(0, 1), row_of(1, 3), row_of(2, 3)}), 1U);
  EXPECT_EQ(best_of({EvalRow{}, row_of(1, -3)}), 1U);
  EXPECT_FALSE(best_of({EvalRow{}}));
  EXPECT_FALSE(best_of({}));
}

TEST(EvalTable, WinsAreToldWithTheirInterval) { EXPECT_EQ(wins_text(*row_of(0, 1).against), "wins 63 % (22-91 %)"); }

}  // namespace
}  // namespace kedge::cli
