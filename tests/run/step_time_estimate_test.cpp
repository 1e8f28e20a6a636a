#include "kedge/run/step_time_estimate.h"

#include <gtest/gtest.h>

#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

// No times are asserted, only that every part of a step is counted, and as often as it comes.
TEST(Pace, EveryPartOfAStepTakesTime) {
  StepWork work;
  work.pass.model = kedge::testing::tiny_config(kedge::testing::kTinyLlama);
  work.pass.tokens = 64, work.pass.rows = 4, work.pass.longest = 16;
  work.update_tokens = 256;
  const Pace training = measure_pace(work);
  EXPECT_GT(training.update, 0);
  EXPECT_EQ(training.look, 0);
  EXPECT_EQ(training.generate, 0);
  work.look_tokens = 256;
  work.answers = 8, work.prompt_tokens = 4, work.answer_tokens = 20;
  const Pace online = measure_pace(work);
  EXPECT_GT(online.look, 0);
  EXPECT_GE(online.generate, 0);
  EXPECT_EQ(online.total(), online.generate + online.look + online.update);
}

TEST(Pace, AdaptersAndScoreHeadsAreTriedToo) {
  StepWork work;
  work.pass.model = kedge::testing::tiny_config(kedge::testing::kTinyLlama);
  work.pass.head = {HeadKind::score, 1, false};
  work.pass.tokens = 32, work.pass.rows = 2, work.pass.longest = 16;
  work.update_tokens = 32;
  work.pass.lora.emplace();
  work.pass.lora->layer_selection = std::vector<int64_t>{2};
  EXPECT_GT(measure_pace(work).update, 0);
}

}  // namespace
}  // namespace kedge
