#include "cli/text/answer_json.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/rollouts.h"

namespace kedge::cli {
namespace {

RolloutRow row_of(std::string response, double reward) {
  RolloutRow row{.rollout = testing::shared(testing::rollout(std::move(response))), .slot = 2};
  row.reward.value = reward;
  row.reward.parts = {{"a", 0.5}};
  return row;
}

TEST(AnswerJson, AnAnswerWithItsNumbers) {
  RolloutRow row = row_of("yes", 1.5);
  const Json main = json_of(4, row, AnswerParts::main);
  EXPECT_EQ(main.at("step", ""), Json(4));
  EXPECT_EQ(main.at("response", ""), Json("yes"));
  EXPECT_EQ(main.at("length", ""), Json(2));
  EXPECT_EQ(main.at("reward", ""), Json(1.5));
  EXPECT_EQ(main.at("parts", "").dump(), R"({"a": 0.5})");
  EXPECT_TRUE(main.at("kl", "").is_null());  // there is no reference
  EXPECT_EQ(main.find("ids"), nullptr);
  EXPECT_EQ(json_of(4, row, AnswerParts::all).at("ids", "").dump(), "[10, 11, 12]");
  row.reward.error = "no reply";
  EXPECT_TRUE(json_of(4, row, AnswerParts::main).at("reward", "").is_null());
  EXPECT_EQ(json_of(4, row, AnswerParts::main).at("error", ""), Json("no reply"));
}

TEST(AnswerJson, APairHasBothSides) {
  const Json pair = json_of(AnswerPair{0, 1, true}, row_of("before", 1), row_of("after", 2));
  EXPECT_EQ(pair.at("response", "").dump(), R"(["before", "after"])");
  EXPECT_EQ(pair.at("reward", "").dump(), "[1.0, 2.0]");
  EXPECT_EQ(pair.at("differs", ""), Json(true));
}

TEST(AnswerJson, AStepInNumbers) {
  const RolloutRows rows = {row_of("a", 1), row_of("b", 3)};
  const Json step = json_of(7, numbers_of(rows));
  EXPECT_EQ(step.at("step", ""), Json(7));
  EXPECT_EQ(step.at("answers", ""), Json(2));
  EXPECT_EQ(step.at("reward", ""), Json(2.0));
}

}  // namespace
}  // namespace kedge::cli
