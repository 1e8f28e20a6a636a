#include "kedge/reward/row_answer.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

TEST(RowAnswer, APathEntersObjects) {
  const Json row = Json::parse(R"({"a": {"b": {"c": 1}}, "a.b": 2, "d": 3})");
  EXPECT_EQ(*find_field(row, "d"), Json(3));
  EXPECT_EQ(*find_field(row, "a.b"), Json(2));  // a field of that very name comes first
  EXPECT_EQ(*find_field(row, "a.b.c"), Json(1));
  for (const char* path : {"", ".", "a.", "a.x", "d.e", "a.b.c.d", "x"}) EXPECT_EQ(find_field(row, path), nullptr) << path;
}

TEST(RowAnswer, IsWhereDataSetsUsuallyHaveIt) {
  const auto answer = [](const char* row) {
    const Json json = Json::parse(row);
    const Json* found = find_answer(json, "");
    return found == nullptr ? std::string("none") : found->dump();
  };
  EXPECT_EQ(answer(R"({"question": "Q", "answer": "#### 72"})"), R"("#### 72")");
  EXPECT_EQ(answer(R"({"data_source": "gsm8k", "reward_model": {"style": "rule", "ground_truth": "72"}})"), R"("72")");
  EXPECT_EQ(answer(R"({"prompt": "Q", "ground_truth": 72})"), "72");
  EXPECT_EQ(answer(R"({"prompt": "Q", "solution": "\\boxed{72}"})"), R"("\\boxed{72}")");
  EXPECT_EQ(answer(R"({"answer": null, "solution": "7"})"), R"("7")");
  EXPECT_EQ(answer(R"({"answer": null})"), "null");
  EXPECT_EQ(answer(R"({"text": "Q"})"), "none");
  EXPECT_EQ(answer_field(Json::parse(R"({"reward_model": {"ground_truth": "7"}, "solution": 1})"), ""), "reward_model.ground_truth");
  EXPECT_EQ(answer_field(Json::parse("{}"), ""), "answer");
  EXPECT_EQ(answer_field(Json::parse("{}"), "x.y"), "x.y");
  EXPECT_EQ(*find_answer(Json::parse(R"({"answer": 1, "label": 2})"), "label"), Json(2));
}

}  // namespace
}  // namespace kedge
