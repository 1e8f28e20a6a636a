#include "kedge/train/step_plan.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

using Epochs = std::vector<int64_t>;

// spec/trainers.md 21.9
TEST(StepPlan, StepsOfTheSpec) {
  const StepPlan plan = plan_steps(1000, 128, 3, -1);
  EXPECT_EQ(plan.steps_per_epoch, 7);
  EXPECT_EQ(plan.max_steps, 21);
  EXPECT_EQ(plan_steps(1000, 128, 3, 10).max_steps, 10);
  EXPECT_EQ(plan_steps(1000, 128, 3, 0).max_steps, 0);
  EXPECT_EQ(plan_steps(1000, 128, 3, 100).max_steps, 21);
}

TEST(StepPlan, EpochsOfTheSpec) {
  const StepPlan plan = plan_steps(1000, 128, 3, -1);
  EXPECT_EQ(plan.epochs_from(5), (Epochs{2, 7, 7}));
  EXPECT_EQ(plan.epochs_from(14), (Epochs{7}));
  EXPECT_EQ(plan.epochs_from(21), Epochs{});
  EXPECT_EQ(plan_steps(1000, 128, 3, 10).epochs_from(0), (Epochs{7, 3}));
  EXPECT_EQ(plan.epoch_of(6), 0);
  EXPECT_EQ(plan.epoch_of(7), 1);
}

TEST(StepPlan, ASetSmallerThanABatchHasNoSteps) {
  const StepPlan plan = plan_steps(100, 128, 3, -1);
  EXPECT_EQ(plan.max_steps, 0);
  EXPECT_EQ(plan.epochs_from(0), Epochs{});
  EXPECT_EQ(plan.epoch_of(0), 0);
}

}  // namespace
}  // namespace kedge
