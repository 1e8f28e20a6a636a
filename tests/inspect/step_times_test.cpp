#include "kedge/inspect/step_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge {
namespace {

using ::testing::ElementsAre;

Series series_of(std::string name, std::vector<int64_t> steps, std::vector<double> values) {
  return {.name = std::move(name), .steps = std::move(steps), .values = std::move(values)};
}

// Steps 0 to 3 of 4 s. Waiting was timed in two of them alone, as where a run was resumed with another reward: 2 s in two steps are 1 s a
// step.
TEST(StepTimes, APartThatSomeStepsLackCountsAsNothingInThem) {
  const std::vector<Series> series = {series_of("timers/generate", {0, 1, 2, 3}, {1, 1, 1, 1}),
                                      series_of("timers/critic_wait", {2, 3}, {2, 2}),
                                      series_of("train/step_time", {0, 1, 2, 3}, {4, 4, 4, 4})};
  const StepTimes times = step_times_of(series, 2);
  EXPECT_THAT(times.names, ElementsAre("generation", "wait for rewards", "the rest"));
  EXPECT_THAT(times.means, ElementsAre(1, 1, 2));
  ASSERT_EQ(times.stretches.size(), 2U);
  EXPECT_THAT(times.stretches[0].parts, ElementsAre(1, 0, 3));
  EXPECT_THAT(times.stretches[1].parts, ElementsAre(1, 2, 1));
  EXPECT_EQ(times.stretches[1].begin, 2);
  EXPECT_EQ(times.stretches[1].end, 4);
}

// Five steps in two stretches of two and three: the mean is that of the steps, not of the stretches, however many there are.
TEST(StepTimes, MeansDoNotDependOnTheStretches) {
  const std::vector<Series> series = {series_of("timers/generate", {0, 1, 2, 3, 4}, {1, 1, 1, 1, 6}),
                                      series_of("train/step_time", {0, 1, 2, 3, 4}, {2, 2, 2, 2, 7})};
  EXPECT_THAT(step_times_of(series, 2).means, ElementsAre(2, 1));
  EXPECT_EQ(step_times_of(series, 2).means, step_times_of(series, 40).means);
}

TEST(StepTimes, WithoutATotalThereIsNoRestAndWithoutTimesNothing) {
  const std::vector<Series> series = {series_of("timers/generate", {0, 1}, {1, 3})};
  EXPECT_THAT(step_times_of(series, 8).names, ElementsAre("generation"));
  EXPECT_THAT(step_times_of(series, 8).means, ElementsAre(2));
  EXPECT_TRUE(step_times_of({}, 8).empty());
  const std::vector<Series> others = {series_of("train/loss", {0}, {1})};
  EXPECT_TRUE(step_times_of(others, 8).empty());
}

}  // namespace
}  // namespace kedge
