#include "cli/text/replay_text.h"

#include <gtest/gtest.h>

#include <sstream>

namespace kedge::cli {
namespace {

StepComparison some_comparison() {
  StepComparison comparison{.step = 3, .notes = {"a word"}};
  comparison.quantities = {
      {.name = "weights before", .num_compared = 1},
      {.name = "engine log-probs",
       .num_compared = 4096,
       .num_differ = 2,
       .largest = 0.5,
       .place = {.answer = 3, .token = 17},
       .recorded = "-0.75",
       .computed = "-0.25"},
      {.name = "update loss",
       .num_compared = 2,
       .num_differ = 1,
       .largest = 1e-9,
       .place = {.update = 1},
       .recorded = "1.0",
       .computed = "1.000000001"},
      {.name = "weights after", .num_compared = 1, .num_differ = 1, .recorded = "0123456789abcdef", .computed = "fedcba9876543210"}};
  return comparison;
}

TEST(ReplayText, ATableTellsWhereTheLargestDifferenceIs) {
  EXPECT_EQ(comparison_table(some_comparison(), true),
            "quantity                      compared      differ  largest difference\n"
            "weights before                       1           -\n"
            "engine log-probs                  4096           2                 0.5\n"
            "  answer 3, token 17: recorded -0.75, computed -0.25\n"
            "update loss                          2           1                1e-9\n"
            "  update 1: recorded 1.0, computed 1.000000001\n"
            "weights after                        1           1\n"
            "  recorded 0123456789abcdef, computed fedcba9876543210\n");
  EXPECT_EQ(comparison_table(some_comparison(), false).find("weights before"), std::string::npos);
}

TEST(ReplayText, NoLineIsWiderThanATerminal) {
  StepComparison comparison = some_comparison();
  comparison.quantities[1].name = "update a_number_with_a_very_long_name_that_somebody_gave_it";
  comparison.quantities[1].recorded = std::string(200, '1');
  const std::string text = comparison_table(comparison, true) + paragraph("note: " + std::string(50, 'x') + " " + std::string(100, 'y'));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(ReplayText, JsonHasTheSame) {
  const Json json = comparison_json(some_comparison());
  EXPECT_EQ(json.at("step", ""), Json(3));
  EXPECT_EQ(json.at("matches", ""), Json(false));
  EXPECT_TRUE(json.at("blame", "").is_text());
  const Json::Array& quantities = json.at("quantities", "").as_array("");
  ASSERT_EQ(quantities.size(), 4U);
  EXPECT_EQ(quantities[0].find("largest"), nullptr);
  EXPECT_EQ(quantities[1].at("place", "").at("token", ""), Json(17));
  EXPECT_EQ(quantities[1].at("recorded", ""), Json("-0.75"));
  EXPECT_EQ(quantities[2].at("place", "").at("update", ""), Json(1));
  EXPECT_EQ(json.at("notes", "").as_array("").size(), 1U);
}

}  // namespace
}  // namespace kedge::cli
