#include "kedge/rollout/step_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tests/support/rollouts.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

RolloutRow answer(int64_t slot) {
  return {.rollout = testing::shared({.prompt_id = slot, .ids = {5, 0, 7}, .prompt_length = 1, .logprobs = {-0.5F, -1}}),
          .slot = slot,
          .reward = {.value = 0.75, .parts = {{"tone", -1.5}}},
          .logprobs = {-0.5F, -1},
          .reference = {-0.75F, -0.125F},
          .entropy = 1.5,
          .kl_mean = 0.25,
          .kl_sum = 0.5,
          .reward_with_kl = 0.7,
          .baseline = 2,
          .advantage = -1.25,
          .values = {0.5F, 1},
          .advantages = {1.5F, -1.25F},
          .returns = {2, -0.25F},
          .trains = true};
}

RecordedStep a_step() {
  return {{.step = 3,
           .fingerprint = "f",
           .weights_before = "aa",
           .weights_after = "bb",
           .updates = {{{"loss", 0.5}, {"lr", 1e-3}}, {{"loss", 0.25}, {"lr", 1e-3}}}},
          {answer(0), answer(1)}};
}

CloseLook a_look(const RecordedStep& step) {
  CloseLook look;
  for (const RolloutRow& row : step.rows) {
    look.logprobs.push_back(row.logprobs);
    look.rewards.push_back(row.reward);
    look.drawn.push_back(row.rollout->ids);
  }
  return look;
}

// What is found when the computed side, or the look, is changed.
StepComparison changed(const std::function<void(RecordedStep& computed, CloseLook& look)>& change, double tolerance = 0) {
  const RecordedStep recorded = a_step();
  RecordedStep computed = recorded;  // the rollouts are shared
  CloseLook look = a_look(recorded);
  change(computed, look);
  return compare_step(recorded, computed, look, tolerance);
}

std::vector<std::string> others(const StepComparison& comparison) {
  std::vector<std::string> names;
  for (const Quantity& quantity : comparison.quantities)
    if (quantity.num_differ > 0) names.push_back(quantity.name);
  return names;
}

TEST(StepComparison, EqualStepsMatchInEverything) {
  const StepComparison same = changed([](auto&, auto&) {});
  EXPECT_TRUE(same.matches());
  EXPECT_EQ(same.step, 3);
  std::vector<std::string> names;
  for (const Quantity& quantity : same.quantities) names.push_back(quantity.name);
  EXPECT_THAT(names,
              ElementsAre("weights before", "prompts and settings", "answers", "engine log-probs", "log-probs", "reference log-probs",
                          "entropy", "KL", "KL sums", "rewards", "reward parts", "rewards with KL", "baselines", "advantages",
                          "token advantages", "returns", "trained on", "updates", "update loss", "update lr", "weights after"));
  EXPECT_EQ(same.find("engine log-probs")->num_compared, 4);
  EXPECT_EQ(same.find("update loss")->num_compared, 2);
  EXPECT_EQ(same.find("advantages")->num_compared, 2);
}

TEST(StepComparison, TheLastBitOfANumberIsADifference) {
  const StepComparison other = changed([](RecordedStep& computed, CloseLook&) {
    computed.rows[0].reference[1] = std::nextafter(computed.rows[0].reference[1], 0.0F);
    computed.rows[1].reference[0] += 0.5F;
  });
  EXPECT_THAT(others(other), ElementsAre("reference log-probs"));
  const Quantity& quantity = *other.find("reference log-probs");
  EXPECT_EQ(quantity.num_differ, 2);
  EXPECT_EQ(quantity.largest, 0.5);
  EXPECT_EQ(place_text(quantity.first), "answer 0, token 1");
  EXPECT_EQ(place_text(quantity.place), "answer 1, token 0");
  EXPECT_EQ(quantity.recorded, "-0.75");
  EXPECT_EQ(quantity.computed, "-0.25");
}

TEST(StepComparison, PlacesAreNamedAsFarAsTheyAreKnown) {
  EXPECT_EQ(place_text({}), "");
  EXPECT_EQ(place_text({.answer = 0}), "answer 0");
  EXPECT_EQ(place_text({.answer = 2, .token = 5}), "answer 2, token 5");
  EXPECT_EQ(place_text({.update = 1}), "update 1");
}

TEST(StepComparison, WithinATolerancePlacesStillCount) {
  const auto change = [](RecordedStep& computed, CloseLook&) {
    computed.rows[1].baseline += 1e-5;
    computed.rows[1].advantage += 0.1;
    computed.header.weights_after = "other";
  };
  EXPECT_THAT(others(changed(change, 1e-3)), ElementsAre("advantages"));
  EXPECT_EQ(changed(change, 1e-3).find("weights after"), nullptr);
  EXPECT_NEAR(changed(change, 1e-3).find("baselines")->largest_ignored, 5e-6, 1e-9) << "of a baseline of 2";
  EXPECT_EQ(changed(change, 1e-3).find("advantages")->largest_ignored, 0);
  EXPECT_THAT(others(changed(change)), ElementsAre("baselines", "advantages", "weights after"));
}

TEST(StepComparison, WithinAToleranceAnswersNeedNotHaveAnEntropy) {
  const auto change = [](RecordedStep& computed, CloseLook&) { computed.rows[1].entropy.reset(); };
  EXPECT_THAT(others(changed(change)), ElementsAre("entropy"));
  EXPECT_TRUE(changed(change, 1e-3).matches());
  EXPECT_EQ(changed(change, 1e-3).find("entropy")->num_compared, 1);
}

TEST(StepComparison, NumbersThatJsonLacksAreAlike) {
  const RecordedStep kept = a_step();
  RecordedStep recorded = kept, computed = kept;
  recorded.rows[0].advantage = std::numeric_limits<double>::quiet_NaN();
  computed.rows[0].advantage = -std::numeric_limits<double>::infinity();
  EXPECT_TRUE(compare_step(recorded, computed, {}, 0).matches());
  computed.rows[0].advantage = 1;
  EXPECT_THAT(others(compare_step(recorded, computed, {}, 0)), ElementsAre("advantages"));
}

TEST(StepComparison, ListsOfOtherLengthsDiffer) {
  const StepComparison other = changed([](RecordedStep& computed, CloseLook&) { computed.rows[1].returns.clear(); });
  EXPECT_THAT(others(other), ElementsAre("returns"));
  EXPECT_EQ(other.find("returns")->recorded, "2 numbers");
  EXPECT_EQ(other.find("returns")->computed, "0 numbers");
}

TEST(StepComparison, OfAnOlderRecordHashesAndUpdatesAreNotCompared) {
  RecordedStep recorded = a_step();
  recorded.header.weights_before = recorded.header.weights_after = "";
  recorded.header.updates.clear();
  RecordedStep computed = recorded;
  computed.header = {.step = 3, .fingerprint = "of another kind", .weights_before = "aa", .weights_after = "bb"};
  const StepComparison comparison = compare_step(recorded, computed, {}, 0);
  EXPECT_TRUE(comparison.matches());
  EXPECT_EQ(comparison.find("weights after"), nullptr);
  EXPECT_THAT(comparison.notes, ElementsAre(HasSubstr("an older record")));
}

TEST(StepComparison, DrawnAnswersAreComparedByToken) {
  const StepComparison other = changed([](RecordedStep&, CloseLook& look) {
    look.drawn[1] = {5, 0, 9};
    look.drawn[0] = {5, 0};
  });
  const Quantity& quantity = *other.find("answers");
  EXPECT_EQ(quantity.num_differ, 2);
  EXPECT_EQ(quantity.place.answer, 0);
  EXPECT_EQ(quantity.place.token, 1);
  EXPECT_EQ(quantity.recorded, "7");
  EXPECT_EQ(quantity.computed, "no token");
  EXPECT_THAT(blame_of(other), StartsWith("the record's tokens"));
}

TEST(StepComparison, BlamesWhatTheRestFollowsFrom) {
  const auto blamed = [](auto&& change) { return blame_of(changed(change)); };
  EXPECT_THAT(blamed([](RecordedStep& computed, CloseLook& look) {
                computed.header.weights_before = "other";
                look.logprobs[0][1] = -3;
              }),
              StartsWith("the weights before the step"));
  // A token decides the numbers of all lists.
  EXPECT_THAT(blamed([](RecordedStep& computed, CloseLook& look) {
                look.logprobs[0][1] = -3;
                computed.rows[0].reference[1] = -4;
                computed.header.weights_after = "other";
              }),
              StartsWith("the record's tokens: from answer 0, token 1 on"));
  EXPECT_THAT(blamed([](RecordedStep&, CloseLook& look) { look.rewards[1].value = 9; }), StartsWith("the record's rewards"));
  EXPECT_THAT(blamed([](RecordedStep&, CloseLook& look) { look.rewards[1] = {.error = "no reply"}; }), StartsWith("the record's rewards"));
  EXPECT_THAT(blamed([](RecordedStep& computed, CloseLook&) { computed.header.fingerprint = "g"; }), StartsWith("the prompts or settings"));
  EXPECT_THAT(blamed([](RecordedStep& computed, CloseLook&) { computed.rows[0].returns[0] = 9; }), StartsWith("the record's returns"));
  EXPECT_THAT(blamed([](RecordedStep& computed, CloseLook&) { computed.header.updates[1].set("loss", 9); }), StartsWith("the update"));
  EXPECT_THAT(blamed([](RecordedStep& computed, CloseLook&) { computed.header.weights_after = "cc"; }), StartsWith("the update"));
}

}  // namespace
}  // namespace kedge
