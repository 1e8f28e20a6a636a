#include "cli/dashboard/dashboard_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/run_toy.h"

namespace kedge::cli {
namespace {

using kedge::testing::error_of;
using kedge::testing::RunToy;
using kedge::testing::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

Texts responses(const Json& told, std::string_view list) {
  Texts texts;
  for (const Json& row : told.at(list, "").as_array("")) texts.push_back(row.at("response", "").as_text(""));
  return texts;
}

TEST(DashboardAnswers, AStepIsSortedSearchedAndCutIntoPages) {
  const TempFolder folder;
  const RunToy toy(folder / "run");
  toy.add_record(2, {{"A cat", "one", 1}, {"A dog", "two", 3}, {"a bird", "CAT", 2}});
  EXPECT_THAT(responses(answers_json(toy.folder(), 2, {}), "answers"), ElementsAre("two", "CAT", "one"));
  EXPECT_THAT(responses(answers_json(toy.folder(), 2, {.key = AnswerKey::advantage}), "answers"), ElementsAre("one", "CAT", "two"));
  EXPECT_THAT(responses(answers_json(toy.folder(), std::nullopt, {.worst = true, .search = "cat"}), "answers"), ElementsAre("one", "CAT"));
  const Json page = answers_json(toy.folder(), 2, {.offset = 1, .limit = 1});
  EXPECT_THAT(responses(page, "answers"), ElementsAre("CAT"));
  EXPECT_EQ(page.at("found", ""), Json(3));
  EXPECT_THAT(responses(answers_json(toy.folder(), 2, {.offset = 99}), "answers"), ElementsAre());
  EXPECT_THAT(error_of([&] { return answers_json(toy.folder(), 5, {}); }), HasSubstr("no answers of step 5"));
}

TEST(DashboardAnswers, PairsTellBothSidesGreatestRiseFirst) {
  const TempFolder folder;
  const RunToy toy(folder / "run");
  toy.add_record(0, {{"a", "a0", 1}, {"b", "b0", 1}});
  toy.add_record(9, {{"a", "a9", 2}, {"b", "b9", 5}});
  const Json told = pairs_json(toy.folder(), toy.folder(), {});
  const Json::Array& pairs = told.at("pairs", "").as_array("");
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].at("response", "").dump(), R"(["b0", "b9"])");
  EXPECT_EQ(pairs[0].at("reward", "").dump(), "[1.0, 5.0]");
  EXPECT_EQ(pairs[0].at("step", "").dump(), "[0, 9]");
  PairQuery query;
  query.search = "A9";
  EXPECT_EQ(pairs_json(toy.folder(), toy.folder(), query).at("found", ""), Json(1));
  query.step = 0;
  EXPECT_EQ(error_of([&] { return pairs_json(toy.folder(), toy.folder(), query); }), "name both steps, or none");
}

TEST(DashboardAnswers, SamplesOfATableAndLinesThatAreNone) {
  const TempFolder folder;
  const RunToy toy(folder / "run");
  EXPECT_EQ(samples_json(toy.folder(), {}).at("total", ""), Json(0));
  toy.add_sample(R"({"step": 1, "table": "val", "prompt": "p", "response": "v1", "reward": 5})");
  toy.add_sample("broken");
  toy.add_sample("[1]");
  toy.add_sample(R"({"step": 2, "table": "train", "prompt": "p", "response": "t2", "reward": "NaN"})");
  toy.add_sample(R"({"step": 3, "table": "train", "prompt": 7, "response": "t3", "reward": 1})");
  AppendFile(toy.folder() / "samples.jsonl").append(R"({"step": 4, "ta)");  // being written
  EXPECT_THAT(responses(samples_json(toy.folder(), {}), "samples"), ElementsAre("t3", "t2", "v1"));
  EXPECT_THAT(responses(samples_json(toy.folder(), {.key = SampleKey::reward}), "samples"), ElementsAre("v1", "t3", "t2"));
  EXPECT_THAT(responses(samples_json(toy.folder(), {.key = SampleKey::reward, .worst = true}), "samples"), ElementsAre("t3", "v1", "t2"));
  EXPECT_THAT(responses(samples_json(toy.folder(), {.table = "train", .search = "T2"}), "samples"), ElementsAre("t2"));
  EXPECT_EQ(samples_json(toy.folder(), {}).at("tables", "").dump(), R"(["train", "val"])");
}

TEST(DashboardAnswers, WhyThereAreNoRecords) {
  const TempFolder folder;
  const RunToy toy(folder / "run");
  const auto why = [&](const char* settings) { return recorded_json(toy.folder(), Json::parse(settings)).at("why", "").as_text(""); };
  EXPECT_EQ(why(R"({"rollouts": {"keep": "none"}})"), "no records: rollouts.keep=none");
  EXPECT_EQ(why(R"({"rollouts": {"keep": "all"}})"), "no records yet");
  EXPECT_THAT(why("{}"), HasSubstr("only kedge grpo, rloo, reinforce, rs and ppo"));
  toy.add_record(4, {{"a", "b"}});
  EXPECT_EQ(why("{}"), "");
  EXPECT_EQ(recorded_json(toy.folder(), {}).at("steps", "").dump(), "[4]");
}

TEST(HasText, UpperAndLowerCaseAreAlike) {
  EXPECT_TRUE(has_text("Once upon", "ONCE"));
  EXPECT_TRUE(has_text("Once", ""));
  EXPECT_TRUE(has_text("", ""));
  EXPECT_FALSE(has_text("Once", "twice"));
  EXPECT_FALSE(has_text("", "x"));
}

}  // namespace
}  // namespace kedge::cli
