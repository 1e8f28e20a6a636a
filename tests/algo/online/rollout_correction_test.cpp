#include "kedge/algo/online/rollout_correction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

// Ratios of 1, 3, 0.25 and 1.5.
const std::vector<float> kGenerated = {-1, -2, -1, -1};
const std::vector<float> kTrained = {-1, static_cast<float>(-2 + std::log(3.0)), static_cast<float>(-1 + std::log(0.25)),
                                     static_cast<float>(-1 + std::log(1.5))};

std::vector<float> weights(RolloutCorrection kind) { return correction_weights(kTrained, kGenerated, {.rollout_correction = kind}); }

TEST(RolloutCorrection, TruncatesMasksTokensOrMasksResponses) {
  EXPECT_THAT(weights(RolloutCorrection::tis), ElementsAre(1, 2, FloatNear(0.25F, 1e-6F), FloatNear(1.5F, 1e-6F)));
  EXPECT_THAT(weights(RolloutCorrection::icepop), ElementsAre(1, FloatNear(3.0F, 1e-5F), 0, FloatNear(1.5F, 1e-6F)));
  EXPECT_THAT(weights(RolloutCorrection::sequence_mask), ElementsAre(1, 1, 1, 1)) << "the product is 1.125";
  const std::vector<float> far = {-1, -2, -1, -3};
  EXPECT_THAT(correction_weights(kTrained, far, {.rollout_correction = RolloutCorrection::sequence_mask}), ElementsAre(0, 0, 0, 0));
}

TEST(RolloutCorrection, OfEqualLogprobsIsExactlyOne) {
  for (const auto& [name, kind] : enum_names(RolloutCorrection{}))
    EXPECT_THAT(correction_weights(kTrained, kTrained, {.rollout_correction = kind}), ElementsAre(1, 1, 1, 1)) << name;
}

TEST(RolloutCorrection, ReportsTheRatiosAndHowManyWereChanged) {
  RolloutRows rows(2);
  rows[0].rollout = std::make_shared<const Rollout>(Rollout{.logprobs = kGenerated});
  rows[0].logprobs = kTrained;
  rows[1].rollout = std::make_shared<const Rollout>(Rollout{});
  const Metrics metrics = add_correction(rows, {.rollout_correction = RolloutCorrection::icepop});
  EXPECT_NEAR(*metrics.find("rollout_correction_mean"), 5.75 / 4, 1e-6);
  EXPECT_NEAR(*metrics.find("rollout_correction_max"), 3, 1e-6);
  EXPECT_NEAR(*metrics.find("rollout_correction_clipped"), 0.25, 1e-12);
  EXPECT_EQ(rows[0].correction.size(), 4U);
  EXPECT_TRUE(rows[1].correction.empty());
  rows[0].correction.clear();
  EXPECT_FALSE(add_correction(rows, {}).find("rollout_correction_mean"));
  EXPECT_TRUE(rows[0].correction.empty());
}

TEST(RolloutCorrection, ARangeHasTwoEnds) {
  const auto range = [] { return check_correction({.rollout_correction_range = {2, 1}}, "trainer.grpo"), 0; };
  EXPECT_EQ(testing::error_of(range), "trainer.grpo.rollout_correction_range: expected two numbers, the smaller first");
}

}  // namespace
}  // namespace kedge
