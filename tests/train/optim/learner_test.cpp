#include "kedge/train/optim/learner.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/temp_folder.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::same_bits;

LearnerOptions learner_options() {
  LearnerOptions options{.horizon = 10, .counter = "toy.updates"};
  options.optim.lr = 0.1;
  options.optim.weight_decay = 0.5;
  options.optim.sched = {.warmup_steps = 4, .constant_steps = 0, .min_lr = 0.01};
  return options;
}

struct LearnerToy {
  Parameters parameters{{{"w", {2}, true, ParameterSpec::Init::ones}}, {.trainable = true}};
  Learner learner{learner_options(), parameters};

  LearnerToy() { parameters.initialise(1, 1); }
  [[nodiscard]] Tensor weights() const { return parameters.flat_master().detach().clone(); }
  LearnerUpdate update() {
    learner.zero_gradients();
    parameters.gradient(0).copy_(at::tensor({3.0F, 4.0F}));
    return learner.update();
  }
};

TEST(Learner, AnUpdateFollowsTheSchedule) {
  LearnerToy toy;
  const Schedule schedule(learner_options().optim.sched, 0.1, 10);
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(toy.learner.next_rate(), schedule.rate(i));
    const LearnerUpdate update = toy.update();
    EXPECT_EQ(update.index, i);
    EXPECT_EQ(update.lr, schedule.rate(i));
    EXPECT_DOUBLE_EQ(update.grad_norm, 5) << "before clipping";
    EXPECT_EQ(update.num_skipped, 0);
  }
  EXPECT_EQ(toy.learner.num_updates(), 6);
}

// Momentum and decay alone would move the weights.
TEST(Learner, AnUpdateWithoutAnythingToLearnIsCountedAndChangesNothing) {
  LearnerToy toy;
  for (int i = 0; i < 3; ++i) static_cast<void>(toy.update());
  const Tensor before = toy.weights();
  EXPECT_EQ(toy.learner.update(false).index, 3);
  EXPECT_TRUE(same_bits(toy.weights(), before));
  EXPECT_EQ(toy.learner.num_updates(), 4);
}

TEST(Learner, ResumesBitForBit) {
  const testing::TempFolder temp;
  LearnerToy toy, resumed;
  for (int i = 0; i < 3; ++i) static_cast<void>(toy.update());
  StateSnapshot state;
  toy.learner.save(state);
  state.write(temp / "state");
  resumed.parameters.flat_master().detach().copy_(toy.weights());
  resumed.learner.load(StateFiles(temp / "state"));
  EXPECT_EQ(resumed.learner.num_updates(), 3);
  EXPECT_EQ(resumed.update().lr, toy.update().lr);
  EXPECT_TRUE(same_bits(resumed.weights(), toy.weights()));
}

TEST(Learner, GradientsThatAreNoNumbersAreSkippedAndCounted) {
  LearnerToy toy;
  toy.learner.zero_gradients();
  toy.parameters.gradient(0).copy_(at::tensor({NAN, 4.0F}));
  const Tensor before = toy.weights();
  EXPECT_EQ(toy.learner.update().num_skipped, 1);
  EXPECT_TRUE(same_bits(toy.weights(), before));
}

}  // namespace
}  // namespace kedge
