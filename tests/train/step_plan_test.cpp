#include "kedge/train/step_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

// spec/trainers.md 21.9
TEST(StepPlan, StepsThatTheEpochsDoNotHaveAreWarnedOf) {
  EXPECT_EQ(fewer_steps_hint(plan_steps(10, 4, 1, 100), 1, 100, "trainer.sft"),
            "trainer.sft.max_steps: 100 steps are requested, but 2 are made: trainer.sft.max_epochs=1 over 2 steps per epoch; raise "
            "trainer.sft.max_epochs for more");
  EXPECT_EQ(fewer_steps_hint(plan_steps(10, 4, 50, 100), 50, 100, "trainer.sft"), std::nullopt);
  EXPECT_EQ(fewer_steps_hint(plan_steps(10, 4, 1, -1), 1, -1, "trainer.sft"), std::nullopt);
}

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
  EXPECT_EQ(plan.epoch_of(6), 0);
  EXPECT_EQ(plan.epoch_of(7), 1);
}

// 16 samples an epoch.
TEST(StepPlan, EpochsCountSamplesIfTheBatchSizeHasChanged) {
  const StepPlan larger = continue_steps(plan_steps(16, 4, 2, -1), {.step = 3, .consumed_samples = 6}, 4, 2, -1);
  EXPECT_EQ(larger.max_steps, 3 + 26 / 4);
  EXPECT_EQ(larger.epoch_of(3), 0) << "samples 6 to 9";
  EXPECT_EQ(larger.epoch_of(4), 0) << "10 to 13";
  EXPECT_EQ(larger.epoch_of(5), 1) << "2 are too few";
  EXPECT_EQ(larger.epoch_of(larger.max_steps - 1), 1);
  const StepPlan smaller = continue_steps(plan_steps(16, 2, 2, -1), {.step = 5, .consumed_samples = 20}, 2, 2, -1);
  EXPECT_EQ(smaller.epoch_of(5), 1) << "samples 20 and 21";
  EXPECT_EQ(smaller.epoch_of(smaller.max_steps - 1), 1);
  const StepPlan same = continue_steps(plan_steps(16, 4, 2, -1), {.step = 3, .consumed_samples = 12}, 4, 2, -1);
  EXPECT_EQ(same.epoch_of(3), 0);
  EXPECT_EQ(same.epoch_of(4), 1);
}

TEST(StepPlan, ASetSmallerThanABatchHasNoSteps) {
  const StepPlan plan = plan_steps(100, 128, 3, -1);
  EXPECT_EQ(plan.max_steps, 0);
  EXPECT_EQ(plan.epoch_of(0), 0);
}

// spec/trainers.md 5.3: step, last step, intervals of validation and saving, is there validation -> validate, save, end.
TEST(Due, AsTheSpecsTableSays) {
  struct Case {
    int64_t step, max_steps, validate, save;
    bool has_validation;
    Due due;
  };
  for (const Case& c : {Case{10, 10, 3, 9, true, {true, true, true}}, Case{10, 10, 3, 9, false, {false, true, true}},
                        Case{3, 10, 3, 9, true, {true, false, false}}, Case{6, 10, 3, 9, true, {true, false, false}},
                        Case{9, 10, 3, 9, true, {true, true, false}}, Case{9, 10, 3, 9, false, {false, true, false}},
                        Case{6, 10, 1, 2, false, {false, true, false}}, Case{10, 10, 3, 0, true, {true, false, true}},
                        Case{10, 10, 0, 9, true, {false, true, true}}, Case{10, 10, 0, 0, true, {false, false, true}}})
    EXPECT_EQ(due_after(c.step, {c.max_steps, c.validate, c.save, c.has_validation}, false), c.due)
        << "step " << c.step << " validate " << c.validate << " save " << c.save;
}

TEST(Due, WhenTimeIsOverWhateverTheInterval) {
  EXPECT_EQ(due_after(4, {10, 3, 9, true}, true), (Due{true, true, false}));
  EXPECT_EQ(due_after(4, {10, 0, 0, true}, true), (Due{false, false, false}));
}

TEST(Intervals, OfSavingAreMultiplesOfValidation) {
  EXPECT_THAT(error_of([&] {
                check_intervals({100, 3, 10, true}, "trainer.sft");
              }),
              HasSubstr("trainer.sft.save_interval: 10 is not a multiple of val_check_interval, 3"));
  for (const Intervals& fine :
       {Intervals{100, 3, 9, true}, Intervals{100, 3, 10, false}, Intervals{100, 0, 10, true}, Intervals{100, 3, 0, true}})
    EXPECT_NO_THROW(check_intervals(fine, "trainer.sft"));
}

TEST(Limits, AreCountsSharesOrNone) {
  EXPECT_EQ(limited_batches(Json(), 40, "k"), 40);
  EXPECT_EQ(limited_batches(Json(7), 40, "k"), 7);
  EXPECT_EQ(limited_batches(Json(70), 40, "k"), 40);
  EXPECT_EQ(limited_batches(Json(0.25), 40, "k"), 10);
  EXPECT_EQ(limited_batches(Json(1.0), 40, "k"), 40);
  EXPECT_EQ(limited_batches(Json(2.5), 40, "k"), 40);
  EXPECT_THAT(error_of([&] { return limited_batches(Json(-1), 40, "limit_val_batches"); }), HasSubstr("limit_val_batches"));
  EXPECT_EQ(interval_steps(Json(100), 7, "k"), 100);
  EXPECT_EQ(interval_steps(Json(-1), 7, "k"), 0);
  EXPECT_EQ(interval_steps(Json(0.5), 7, "k"), 3);
  EXPECT_EQ(interval_steps(Json(0.1), 7, "k"), 1);  // not 0, which is never
  EXPECT_EQ(interval_steps(Json(0.0), 7, "k"), 0);
  EXPECT_THAT(error_of([&] { return interval_steps(Json(1.5), 7, "val_check_interval"); }), HasSubstr("val_check_interval"));
}

}  // namespace
}  // namespace kedge
