#include "kedge/train/optim/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/config/config.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::IsEmpty;

ScheduleConfig config_of(int64_t warmup, int64_t constant, double min_lr) {
  return {.warmup_steps = warmup, .constant_steps = constant, .min_lr = min_lr};
}

// spec/trainers.md 21.9
TEST(Schedule, RatesOfTheSpecWithATail) {
  const Schedule schedule(config_of(10, 1000, 9e-8), 9e-7, 2000);
  EXPECT_EQ(schedule.rate(0), 0);
  EXPECT_NEAR(schedule.rate(1), 9e-8, 1e-17);
  EXPECT_NEAR(schedule.rate(5), 4.5e-7, 1e-16);
  EXPECT_NEAR(schedule.rate(10), 9e-7, 1e-16);
  EXPECT_NEAR(schedule.rate(11), 8.999979608e-7, 1e-16);
  EXPECT_NEAR(schedule.rate(505), 4.95e-7, 1e-16);
  EXPECT_NEAR(schedule.rate(999), 9.000203917e-8, 1e-17);
  for (const int64_t update : {1000, 1001, 1999, 2000, 5000}) EXPECT_EQ(schedule.rate(update), 9e-8);
}

TEST(Schedule, RatesOfTheSpecWithoutATail) {
  const Schedule schedule(config_of(10, 0, 9e-8), 9e-7, 2000);
  EXPECT_NEAR(schedule.rate(0), 8.181818182e-8, 1e-17);
  EXPECT_NEAR(schedule.rate(1), 1.636363636e-7, 1e-16);
  EXPECT_NEAR(schedule.rate(10), 9e-7, 1e-16);
  EXPECT_NEAR(schedule.rate(11), 8.999994953e-7, 1e-16);
  EXPECT_NEAR(schedule.rate(505), 7.825062691e-7, 1e-16);
  EXPECT_NEAR(schedule.rate(1000), 4.981968136e-7, 1e-16);
  EXPECT_NEAR(schedule.rate(2000), 9e-8, 1e-17);
  EXPECT_EQ(schedule.rate(2001), 9e-8);
}

TEST(Schedule, AShortRunFallsToTheBottomAfterTheWarmUp) {
  const Schedule schedule(config_of(10, 1000, 9e-8), 9e-7, 15);
  EXPECT_EQ(schedule.rate(0), 0);
  EXPECT_NEAR(schedule.rate(10), 9e-7, 1e-16);
  for (const int64_t update : {11, 12, 15, 100}) EXPECT_EQ(schedule.rate(update), 9e-8);
}

TEST(Schedule, TheConstantRecipeOfTheReference) {
  const Schedule schedule(config_of(0, 312, 1e-6), 1.001e-6, 313);
  EXPECT_NEAR(schedule.rate(0), 1.001e-6, 1e-16);
  for (const int64_t update : {1, 2, 312}) EXPECT_NEAR(schedule.rate(update), 1e-6, 1e-16);
}

// spec/models-data-ops.md 12
TEST(Schedule, WorkedRatesOfTheSupervisedTrainers) {
  const Schedule tail(config_of(10, 1000, 9e-7), 9e-6, 10000);
  EXPECT_EQ(tail.rate(0), 0);
  EXPECT_NEAR(tail.rate(5), 4.5e-6, 1e-15);
  EXPECT_NEAR(tail.rate(4505), 4.95e-6, 1e-15);
  EXPECT_EQ(tail.rate(9500), 9e-7);
  const Schedule none(config_of(10, 0, 2e-7), 2e-6, 100);
  EXPECT_NEAR(none.rate(0), 1.818e-7, 1e-10);
  EXPECT_NEAR(none.rate(55), 1.1e-6, 1e-15);
}

// The default tail of 1000 updates in a run of as many leaves a cosine of length 0.
TEST(Schedule, AHorizonAsLongAsTheTailHasARateForEveryUpdate) {
  for (const int64_t horizon : {999, 1000, 1001})
    for (const int64_t warmup : {0, 1, 2}) {
      const Schedule schedule(config_of(warmup, 1000, 1e-7), 1e-6, horizon);
      for (const int64_t update : {0, 1, 2, 3, 500, 1000}) {
        EXPECT_GE(schedule.rate(update), 0) << horizon << " " << warmup << " " << update;
        EXPECT_LE(schedule.rate(update), 1e-6) << horizon << " " << warmup << " " << update;
      }
    }
  EXPECT_EQ(Schedule(config_of(0, 1000, 1e-7), 1e-6, 1000).rate(0), 1e-7);
}

TEST(Schedule, ARunThatBarelyTrainsIsWarnedOf) {
  const auto hint = [](const ScheduleConfig& config, int64_t horizon, int64_t num_updates) {
    return low_rate_hint(Schedule(config, 9e-7, horizon), config, 9e-7, num_updates, "model.optim.sched");
  };
  const ScheduleConfig usual;
  EXPECT_EQ(hint(usual, 2, 2),
            "model.optim.sched: the learning rate of this run's 2 updates is 4.5e-08 on average, while optim.lr is 9e-07: it rises over "
            "warmup_steps=10 updates, and the last constant_steps=1000 are made at min_lr=9e-08; for a run this short use "
            "model.optim.sched.name=constant model.optim.sched.warmup_steps=0");
  EXPECT_NE(hint(usual, 50, 50), std::nullopt);  // at min_lr right after the warm-up
  EXPECT_EQ(hint(usual, 2, 20), std::nullopt);
  EXPECT_EQ(hint(usual, 5000, 5000), std::nullopt);
  EXPECT_EQ(hint(config_of(0, 0, 1e-7), 1, 1), std::nullopt);
  EXPECT_NE(hint(config_of(0, 1000, 1e-7), 1000, 1000), std::nullopt);
  EXPECT_EQ(hint(usual, 0, 0), std::nullopt);
}

TEST(Schedule, AConstantRateRisesOnce) {
  ScheduleConfig config = config_of(3, 1000, 1);
  config.name = ScheduleKind::constant;
  const Schedule schedule(config, 0.4, 10);
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.rate(2), 0.3);
  for (const int64_t update : {3, 10, 1000}) EXPECT_EQ(schedule.rate(update), 0.4);
  config.warmup_steps = 0;
  EXPECT_EQ(Schedule(config, 0.4, 10).rate(0), 0.4);
}

TEST(Schedule, TheHorizonCountsTrainerStepsUnlessItIsSaid) {
  ScheduleConfig config;
  EXPECT_THAT(load_section(describe(config), {"toy", "{}"}, {}), IsEmpty());
  EXPECT_EQ(config.horizon, ScheduleHorizon::trainer_steps);
  EXPECT_THAT(load_section(describe(config), {"toy", "{}"}, {"horizon=optimizer_steps"}), IsEmpty());
  EXPECT_EQ(config.horizon, ScheduleHorizon::optimizer_steps);
}

TEST(Schedule, AnInfiniteRateIsRefused) {
  ScheduleConfig config;
  EXPECT_THAT(error_of([&] {
                return load_section(describe(config), {"toy", "{}"}, {"min_lr=inf"});
              }),
              ::testing::EndsWith("min_lr: expected at least 0 and finite, found inf"));
}

TEST(Schedule, RatesThatCannotFallAreRefused) {
  EXPECT_EQ(error_of([] { return Schedule(config_of(0, 10, 1e-6), 1e-6, 100); }),
            "optim.sched.min_lr is 1e-06, but with constant_steps=10 the learning rate 1e-06 must be above it; for a constant rate use "
            "optim.sched.name=constant");
  EXPECT_EQ(error_of([] { return Schedule(config_of(0, 0, 2e-6), 1e-6, 100); }),
            "optim.sched.min_lr is 2e-06, but with constant_steps=0 the learning rate 1e-06 must be at least that; for a constant rate use "
            "optim.sched.name=constant");
  EXPECT_EQ(Schedule(config_of(0, 0, 1e-6), 1e-6, 100).rate(50), 1e-6);
}

}  // namespace
}  // namespace kedge
