#include "kedge/inspect/settings_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(SettingsDiff, ATreeBecomesDottedKeys) {
  const Json settings = Json::parse(R"({"a": {"b": 1.5, "c": {"d": "text"}}, "e": [1, {"f": 2}], "g": {}, "h": null, "i": true})");
  EXPECT_THAT(flat_settings(settings), ElementsAre(Pair("a.b", "1.5"), Pair("a.c.d", "text"), Pair("e", R"([1, {"f": 2}])"),
                                                   Pair("g", "{}"), Pair("h", "null"), Pair("i", "true")));
  EXPECT_THAT(flat_settings(Json::parse("{}")), IsEmpty());
}

TEST(SettingsDiff, OnlyWhatDiffersIsTold) {
  const std::vector<FlatSettings> all = {{{"lr", "1e-3"}, {"seed", "1"}, {"only", "x"}}, {{"seed", "1"}, {"lr", "1e-4"}, {"new", "y"}}};
  const std::vector<SettingRow> rows = differing_settings(all);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].key, "lr");
  EXPECT_THAT(rows[0].values, ElementsAre("1e-3", "1e-4"));
  EXPECT_EQ(rows[1].key, "only");
  EXPECT_THAT(rows[1].values, ElementsAre("x", std::nullopt));
  EXPECT_EQ(rows[2].key, "new");
  EXPECT_THAT(rows[2].values, ElementsAre(std::nullopt, "y"));
}

TEST(SettingsDiff, AnEmptyMapBesideAFullOneIsToldByItsKeys) {
  const std::vector<FlatSettings> all = {{{"sources", "{}"}, {"local", "null"}}, {{"sources.nice.kind", "regex"}, {"local.lr", "1"}}};
  const std::vector<SettingRow> rows = differing_settings(all);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].key, "sources.nice.kind");
  EXPECT_EQ(rows[1].key, "local.lr");
}

TEST(SettingsDiff, AKeyThatIsMissingOrNullIsTheSame) {
  const std::vector<FlatSettings> all = {{{"a", "null"}, {"b", "{}"}, {"c", "0"}}, {}};
  const std::vector<SettingRow> rows = differing_settings(all);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].key, "c");
}

TEST(SettingsDiff, OneRunAloneDiffersFromNothing) {
  const std::vector<FlatSettings> one = {{{"lr", "1e-3"}}};
  EXPECT_THAT(differing_settings(one), IsEmpty());
  EXPECT_THAT(differing_settings({}), IsEmpty());
}

}  // namespace
}  // namespace kedge
