// A critic on a GPU beside one on the CPU. Skipped where there is none.
#include <gtest/gtest.h>

#include "kedge/core/device.h"

#include "tests/support/toy_critic.h"

namespace kedge {
namespace {

using testing::JudgeFolder;
using testing::relative_error;
using testing::same_bits;
using testing::toy_critic_batch;
using testing::toy_critic_options;
using testing::toy_rewarding_options;

class CriticOnTheGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device";
  }
  static StorageOptions on_gpu(at::ScalarType dtype, bool trainable = true) {
    return {.dtype = dtype, .device = at::Device(at::kCUDA, 0), .trainable = trainable};
  }
  [[nodiscard]] std::unique_ptr<CriticModel> make(const CriticOptions& options, at::ScalarType dtype = at::kFloat) const {
    return std::make_unique<CriticModel>(folder.load(on_gpu(dtype)), options);
  }

  JudgeFolder folder;
  std::vector<TokenIds> rows = testing::rows_of({3, 9, 1, 5, 30}, 256);
};

// fp32 sums of some dozens of products in another order: a few roundings of 6e-8 each, in two layers.
TEST_F(CriticOnTheGpu, ValuesAndRewardsAreThoseOfTheCpu) {
  const auto wanted = testing::toy_critic(folder, toy_rewarding_options()), found = make(toy_rewarding_options());
  EXPECT_TRUE(found->values(rows).is_cpu());
  EXPECT_LT(relative_error(found->values(rows), wanted->values(rows)), 1e-5);
  EXPECT_LT(relative_error(found->rewards(rows), wanted->rewards(rows)), 1e-5);
}

// Plain descent, because AdamW's first step is the sign of a gradient, which rounding may turn where it is near 0.
TEST_F(CriticOnTheGpu, AnUpdateIsThatOfTheCpu) {
  CriticOptions options = toy_critic_options();
  options.optim.name = OptimizerKind::sgd;
  options.optim.sched.warmup_steps = 0;
  const auto wanted = testing::toy_critic(folder, options), found = make(options);
  const Tensor start = testing::weights_of(*wanted).clone();
  const double wanted_loss = *wanted->train(toy_critic_batch(4, 8, 1))[0].find("train/loss");
  EXPECT_NEAR(*found->train(toy_critic_batch(4, 8, 1))[0].find("train/loss"), wanted_loss, 1e-5 * wanted_loss);
  EXPECT_LT(relative_error(testing::weights_of(*found).cpu() - start, testing::weights_of(*wanted) - start), 1e-3);
}

TEST_F(CriticOnTheGpu, RewardsAreThoseOfTheUntouchedFolderHoweverTheyAreKept) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const auto judge = folder.load(on_gpu(dtype, false));
    const Tensor wanted = RewardScorer(*judge, {.max_tokens = 20}).score(rows);
    const auto alone = make(toy_critic_options(), dtype), resident = make(toy_rewarding_options(ReferenceKind::resident), dtype),
               swapped = make(toy_rewarding_options(ReferenceKind::swapped), dtype),
               adapted = testing::toy_adapted_critic(folder, toy_rewarding_options(), on_gpu(dtype));
    for (CriticModel* critic : {resident.get(), swapped.get(), adapted.get()}) {
      EXPECT_TRUE(same_bits(critic->rewards(rows), wanted));
      static_cast<void>(critic->train(toy_critic_batch(6, 8, 1)));
      EXPECT_TRUE(same_bits(critic->rewards(rows), wanted));
    }
    // What may differ between two trainings on a GPU is the order in which it sums, so this looks at one that is swapped in and out.
    const Tensor values = swapped->values(rows), masters = testing::weights_of(*swapped).clone();
    static_cast<void>(swapped->rewards(rows));
    EXPECT_TRUE(same_bits(swapped->values(rows), values));
    EXPECT_TRUE(same_bits(testing::weights_of(*swapped), masters));
    EXPECT_FALSE(same_bits(values, alone->values(rows)));
  }
}

TEST_F(CriticOnTheGpu, ASavedOneWithMomentsInHostMemoryGoesOn) {
  CriticOptions options = toy_critic_options(), away = options;
  away.optim.offload_adam_states = true;
  const auto wanted = make(options, at::kBFloat16), found = make(away, at::kBFloat16), again = make(away, at::kBFloat16);
  static_cast<void>(wanted->train(toy_critic_batch(6, 8, 1)));
  static_cast<void>(found->train(toy_critic_batch(6, 8, 1)));
  const testing::TempFolder temp;
  StateSnapshot state(false);
  static_cast<void>(found->save(state));
  state.write(temp / "state");
  again->load(StateFiles(temp / "state"));
  EXPECT_TRUE(same_bits(testing::weights_of(*again), testing::weights_of(*found)));
  const auto next_loss = [](CriticModel& critic) { return *critic.train(toy_critic_batch(6, 8, 2))[0].find("train/loss"); };
  const double loss = next_loss(*found);
  EXPECT_NEAR(next_loss(*again), loss, 1e-6 * loss);
  // Where a gradient is near 0, two trainings may sum it up to another sign, and AdamW then goes the other way: a step of 1e-2 in a few of
  // some thousand weights.
  EXPECT_NEAR(next_loss(*wanted), loss, 2e-2 * loss);
}

}  // namespace
}  // namespace kedge
