#include "cli/memory_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/model/shapes.h"

#include "tests/support/expect_error.h"

namespace kedge::cli {
namespace {

using ::testing::ElementsAre;

MemoryInput input_of(const char* shape, int64_t rows) {
  MemoryInput input;
  input.model = shape_config(shape);
  input.rows = rows;
  input.longest = 512;
  input.tokens = rows * 512;
  return input;
}

TEST(MemoryCheck, WhatFitsFits) {
  const MemoryInput input = input_of("135m", 4);
  const MemoryVerdict verdict = check_memory(input, {int64_t{1} << 40U, 4, true});
  EXPECT_TRUE(verdict.fits);
  EXPECT_FALSE(verdict.blocks);
  EXPECT_EQ(verdict.needed, verdict.plan.peak() + verdict.plan.snapshot);
  EXPECT_EQ(verdict.free, int64_t{1} << 40U);
  EXPECT_EQ(check_memory(input, {int64_t{1} << 40U, 4, false}).needed, verdict.plan.peak());
}

TEST(MemoryCheck, WithoutRoomForACopySavesBlock) {
  const MemoryInput input = input_of("135m", 4);
  const MemoryPlan plan = plan_memory(input);
  const MemoryVerdict verdict = check_memory(input, {plan.peak() + plan.snapshot - 1, 4, true});
  EXPECT_TRUE(verdict.fits);
  EXPECT_TRUE(verdict.blocks);
  EXPECT_EQ(verdict.needed, plan.peak());
}

TEST(MemoryCheck, OneChangeThatWillDoIsNamed) {
  const MemoryInput input = input_of("135m", 8);
  const MemoryVerdict verdict = check_memory(input, {plan_memory(input_of("135m", 2)).peak(), 8, true});
  EXPECT_FALSE(verdict.fits);
  EXPECT_THAT(verdict.remedies, ::testing::Contains("micro_batch_size=2"));
  EXPECT_THAT(verdict.remedies, ::testing::Not(::testing::Contains("micro_batch_size=4")));
}

TEST(MemoryCheck, OtherwiseSeveralTogether) {
  MemoryInput input = input_of("135m", 8), small = input_of("135m", 1);
  input.lora.emplace();
  small.lora.emplace();
  small.checkpoint = true;
  const MemoryVerdict verdict = check_memory(input, {plan_memory(small).peak(), 8, true});
  EXPECT_FALSE(verdict.fits);
  EXPECT_THAT(verdict.remedies, ElementsAre("micro_batch_size=1 model.activations_checkpoint_granularity=full"));
}

TEST(MemoryCheck, WhatNothingHelpsHasNoRemedies) {
  const MemoryVerdict verdict = check_memory(input_of("8b", 1), {int64_t{1} << 30U, 1, true});
  EXPECT_FALSE(verdict.fits);
  EXPECT_THAT(verdict.remedies, ElementsAre());
}

TEST(MemoryCheck, ARefusalSaysWhatIsNeededWhatIsFreeAndWhatHelps) {
  MemoryVerdict verdict;
  verdict.needed = int64_t{3} << 30U;
  verdict.free = int64_t{1} << 30U;
  verdict.fits = false;
  verdict.remedies = {"a=1", "b=2 c=3"};
  EXPECT_EQ(testing::error_of([&] { require_fit(verdict, "the run"); }),
            "the run needs 3.0 GiB of memory, and 1.0 GiB are free. What would fit:\n  a=1\n  b=2 c=3");
  verdict.remedies.clear();
  EXPECT_EQ(testing::error_of([&] { require_fit(verdict, "the run"); }),
            "the run needs 3.0 GiB of memory, and 1.0 GiB are free; no setting of kedge's would make it fit");
  verdict.fits = true;
  require_fit(verdict, "the run");
}

}  // namespace
}  // namespace kedge::cli
