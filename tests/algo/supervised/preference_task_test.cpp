#include "kedge/algo/supervised/preference_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;

TEST(PreferenceTask, MeansFollowTheLossUnlessTheyAreSet) {
  PreferenceTuningConfig config;
  EXPECT_FALSE(score_means(config, false).preference);
  EXPECT_TRUE(score_means(config, true).preference);
  EXPECT_TRUE(score_means(config, true).sft);
  config.preference_average_log_probs = false;
  EXPECT_FALSE(score_means(config, true).preference);
  config.sft_average_log_probs = true;
  EXPECT_FALSE(score_means(config, true).preference);
  EXPECT_TRUE(score_means(config, true).sft);
}

// Two epochs of 5 rows in batches of 4; row 4 comes in the second alone.
TEST(PreferenceTask, ARowHasThePassOfItsFirstUpdate) {
  const BatchList batches = {{3, 1, 0, 2}, {4, 2, 1, 3}};
  EXPECT_THAT(first_passes(batches, 0, 2), ElementsAre(ElementsAre(3, 1), ElementsAre(0, 2), ElementsAre(4, 2)));
  EXPECT_THAT(first_passes(batches, 1, 2), ElementsAre(ElementsAre(3, 1), ElementsAre(0, 2), ElementsAre(4, 2)));  // after a resume
  EXPECT_THAT(first_passes({{3, 1, 0, 2}, {4, 1, 3}}, 1, 2), ElementsAre(ElementsAre(3, 1), ElementsAre(4, 1)));   // 0 and 2 are done
  EXPECT_THAT(first_passes({{0, 1, 2, Sampler::kNoRow}}, 0, 3), ElementsAre(ElementsAre(0, 1, 2)));
  EXPECT_TRUE(first_passes(batches, 2, 2).empty());
}

TEST(PreferenceTask, PassesOfSeveralSetsFollowEachOther) {
  const auto marked = [](TokenId mark) {
    return [mark](std::span<const int64_t> rows) { return std::vector<ResponseRow>{{{mark, static_cast<TokenId>(rows[0])}, 1}}; };
  };
  const ReferencePasses all =
      joined({reference_passes({{7}, {8}}, marked(1)), reference_passes({}, marked(2)), reference_passes({{9}}, marked(3))});
  ASSERT_EQ(all.count, 3);
  EXPECT_THAT(all.rows(1)[0].ids, ElementsAre(1, 8));
  EXPECT_THAT(all.rows(2)[0].ids, ElementsAre(3, 9));
}

TEST(PreferenceTask, SpreadOfNumbers) {
  const Spread spread = spread_of(6, 14, 3);  // 1, 2, 3
  EXPECT_DOUBLE_EQ(spread.mean, 2);
  EXPECT_DOUBLE_EQ(spread.std, 1);
  EXPECT_EQ(spread_of(2, 4, 1).std, 0);
}

TEST(PreferenceTask, SettingsThatContradictThemselves) {
  PreferenceTuningConfig config;
  config.preference_loss_weight = 0;
  EXPECT_THAT(error_of([&] { check_preference_weights(config, "model.dpo"); }), HasSubstr("model.dpo.preference_loss_weight"));
  config.sft_loss_weight = 1;
  EXPECT_NO_THROW(check_preference_weights(config, "model.dpo"));
  config.reference_cache_folder = "folder";
  EXPECT_THAT(error_of([&] { check_preference_weights(config, "model.dpo"); }), HasSubstr("reference_cache=disk"));
}

}  // namespace
}  // namespace kedge
