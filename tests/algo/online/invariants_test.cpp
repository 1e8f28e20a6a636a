#include "kedge/algo/online/invariants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StepEvidence good() {
  return {.num_rows = 4, .num_sampled = 20, .num_weighted = 20, .ratio_gap = 0, .engine_gap = 0, .is_exact = true, .learned = true};
}

Invariants invariants(OnBroken on_broken = OnBroken::stop) { return {on_broken, "trainer.ppo.health.invariants", 3}; }

struct Fault {
  const char* told;
  std::function<void(StepEvidence&)> make;
};

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all = {
      {"the ratios of the step's first update are not 1", [](StepEvidence& seen) { seen.ratio_gap = 1e-6; }},
      {"generation and training disagree", [](StepEvidence& seen) { seen.engine_gap = 0.2; }},
      {"generation and training disagree", [](StepEvidence& seen) { seen.engine_gap = std::numeric_limits<double>::quiet_NaN(); }},
      {"the loss covers 19 tokens, but 20 were sampled", [](StepEvidence& seen) { seen.num_weighted = 19; }},
      {"an update with a learning rate and a gradient above 0 changed no weight", [](StepEvidence& seen) { seen.changed = false; }},
      {"weights are no longer finite numbers", [](StepEvidence& seen) { seen.is_finite = false; }},
      {"every reward of the step failed (4 of 4), so nothing can be learned; the first: no such file",
       [](StepEvidence& seen) {
         seen.num_failed_rewards = 4;
         seen.first_failure = "no such file";
       }},
  };
  return all;
}

TEST(Invariants, ARunThatIsRightHearsNothing) {
  Invariants watch = invariants();
  for (int64_t step = 0; step < 5; ++step) EXPECT_THAT(watch.judge(step, good()), IsEmpty());
  StepEvidence some_failed = good();
  some_failed.num_failed_rewards = 3;
  EXPECT_THAT(invariants().judge(0, some_failed), IsEmpty());
}

TEST(Invariants, EachFaultEndsTheRunAtItsFirstUpdate) {
  for (const Fault& fault : faults()) {
    StepEvidence seen = good();
    fault.make(seen);
    Invariants watch = invariants();
    const std::string error = error_of<Error>([&] { return watch.judge(0, seen); });
    EXPECT_THAT(error, HasSubstr(std::string("step 0: ") + fault.told));
    EXPECT_THAT(error, HasSubstr("trainer.ppo.health.invariants=warn would continue"));
    EXPECT_THAT(invariants(OnBroken::warn).judge(0, seen), ElementsAre(HasSubstr(fault.told)));
    EXPECT_THAT(invariants(OnBroken::off).judge(0, seen), IsEmpty());
  }
}

// A rate of 0 in the warm-up, or rewards that are all equal.
TEST(Invariants, AnUpdateThatCannotLearnNeitherDecidesNorIsBroken) {
  StepEvidence idle = good();
  idle.learned = idle.changed = false;
  StepEvidence broken = good();
  broken.engine_gap = 1;
  Invariants watch = invariants();
  EXPECT_THAT(watch.judge(0, idle), IsEmpty());
  EXPECT_TRUE(watch.wants_update());
  EXPECT_THAT(error_of<Error>([&] { return watch.judge(1, broken); }), HasSubstr("step 1: generation and training disagree"));
}

TEST(Invariants, LaterOnesAreOnlyWarnedOfUnlessWeightsAreNoNumbers) {
  for (const Fault& fault : faults()) {
    StepEvidence seen = good();
    fault.make(seen);
    Invariants watch = invariants();
    EXPECT_THAT(watch.judge(0, good()), IsEmpty());
    EXPECT_FALSE(watch.wants_update());
    if (seen.is_finite)
      EXPECT_THAT(watch.judge(1, seen), ElementsAre(HasSubstr(fault.told)));
    else
      EXPECT_THAT(error_of<Error>([&] { return watch.judge(1, seen); }), HasSubstr("step 1: weights are no longer finite numbers"));
  }
}

TEST(Invariants, ManyStepsWithoutARewardEndTheRun) {
  StepEvidence failed = good();
  failed.num_failed_rewards = 4;
  failed.first_failure = "gone";
  Invariants watch = invariants();
  EXPECT_THAT(watch.judge(0, good()), IsEmpty());
  EXPECT_THAT(watch.judge(1, failed), ElementsAre(HasSubstr("(4 of 4)")));
  EXPECT_THAT(watch.judge(2, failed), ElementsAre(HasSubstr("(4 of 4; 2 steps in a row)")));
  EXPECT_THAT(watch.judge(3, good()), IsEmpty());
  for (const int64_t step : {4, 5}) EXPECT_EQ(watch.judge(step, failed).size(), 1U);
  EXPECT_THAT(error_of<Error>([&] { return watch.judge(6, failed); }), HasSubstr("(4 of 4; 3 steps in a row)"));
}

TEST(Invariants, ARestoredOneJudgesAsOneThatWasNeverStopped) {
  StepEvidence failed = good();
  failed.num_failed_rewards = 4;
  Invariants first = invariants(), second = invariants();
  EXPECT_THAT(first.judge(0, good()), IsEmpty());
  for (const int64_t step : {1, 2}) EXPECT_EQ(first.judge(step, failed).size(), 1U);
  second.restore(Json::parse(first.state().dump()));
  EXPECT_FALSE(second.wants_update());
  EXPECT_THAT(error_of<Error>([&] { return second.judge(3, failed); }), HasSubstr("3 steps in a row"));
  EXPECT_THROW(second.restore(Json(Json::Object{})), UsageError);
}

TEST(Invariants, GpusMayRound) {
  StepEvidence seen = good();
  seen.is_exact = false;
  seen.ratio_gap = 0.01;
  EXPECT_THAT(invariants().judge(0, seen), IsEmpty());
  seen.ratio_gap = 0.06;
  EXPECT_THAT(error_of<Error>([&] { return invariants().judge(0, seen); }), HasSubstr("differ from those before it by 0.06 nats"));
}

}  // namespace
}  // namespace kedge
