#include "kedge/critic/critic_model.h"

#include <gtest/gtest.h>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/largest_allocation.h"
#include "tests/support/tiny_training.h"
#include "tests/support/toy_critic.h"

namespace kedge {
namespace {

using testing::constant_critic;
using testing::error_of;
using testing::JudgeFolder;
using testing::same_bits;
using testing::toy_critic;
using testing::toy_critic_batch;
using testing::toy_critic_options;
using testing::weights_of;

double loss_of(const Metrics& metrics) { return *metrics.find("train/loss"); }

TEST(CriticModel, AValueIsThatOfTheHeadAtItsToken) {
  const JudgeFolder folder;
  const auto critic = toy_critic(folder);
  const auto rows = testing::rows_of({3, 9, 1, 5}, 256);
  const Tensor values = critic->values(rows);
  ASSERT_EQ(values.sizes(), (std::vector<int64_t>{18}));
  EXPECT_FALSE(values.requires_grad());
  int64_t at = 0;
  for (const auto& row : rows) {
    const NoGrad no_grad;
    const auto length = static_cast<int64_t>(row.size());
    const Tensor wanted = token_scores(critic->model(), pack_rows({&row, 1}, at::kCPU)).select(1, 0);
    EXPECT_TRUE(same_bits(values.narrow(0, at, length), wanted)) << at;
    at += length;
  }
}

// Spec, section 3.4: previous 0.25, return 1, value 0.6, clip 0.2: the limited value is 0.45, the loss 0.5 * 0.55^2 = 0.15125.
TEST(CriticModel, TheWorkedNumberOfTheLoss) {
  const auto loss_with = [](double value, double clip, const Standardization& standardization) {
    CriticOptions options = toy_critic_options();
    options.loss_clip_val = clip;
    options.standardization = standardization;
    const CriticBatch batch{1, 3, {101, 7, 2}, {0, 1}, {0.5, 0.25}, {0, 1}};
    return loss_of(constant_critic(value, options)->train(batch).back());
  };
  EXPECT_NEAR(loss_with(0.6, 0.2, {}), 0.15125, 1e-6);
  EXPECT_NEAR(loss_with(0.6, 0, {}), 0.08, 1e-6);                   // 0.5 * 0.4^2
  EXPECT_NEAR(loss_with(1.7, 0.2, {true, 0.5, 2}), 0.15125, 1e-6);  // (1.7 - 0.5) / 2 = 0.6
}

// What all weights need is there after the first update. No plan has room for something as large that comes and goes.
TEST(CriticModel, NothingInAnUpdateIsAsLargeAsTheWeights) {
  CriticModel critic(testing::tiny_model(testing::kWideByteLlama, {.trainable = true}, {HeadKind::score, 1, false}), toy_critic_options());
  static_cast<void>(critic.train(toy_critic_batch(4, 8, 1)));
  const testing::LargestAllocation memory;
  static_cast<void>(critic.train(toy_critic_batch(4, 8, 1)));
  EXPECT_LT(memory.bytes(), weights_of(critic).nbytes() / 4);
}

// One update by hand: every micro-batch's own mean, then the mean of the two, over values at the places of the mask.
TEST(CriticModel, AnUpdateIsTheMeanOfItsMicroBatches) {
  const JudgeFolder folder;
  CriticOptions options = toy_critic_options();
  options.update.gradient_clip_val = std::nullopt;
  options.optim.name = OptimizerKind::sgd;
  options.optim.weight_decay = 0;
  options.optim.sched.warmup_steps = 0;
  const auto critic = toy_critic(folder, options);
  const auto by_hand = folder.load(true);
  const CriticBatch batch = toy_critic_batch(4, 7, 3);
  double wanted_loss = 0;
  for (const int64_t first : {0, 2}) {
    std::vector<Tensor> distances;
    for (int64_t row = first; row < first + 2; ++row) {
      const std::vector<int32_t> ids(batch.tokens.begin() + row * 7, batch.tokens.begin() + (row + 1) * 7);
      const Tensor values = token_scores(*by_hand, pack_rows({&ids, 1}, at::kCPU)).select(1, 0);
      for (int64_t t = 0; t < 6; ++t) {
        const auto i = static_cast<size_t>(row * 6 + t);
        if (batch.mask[i] == 0) continue;
        const Tensor moved = (values[t] - batch.previous[i]).clamp(-0.2, 0.2) + batch.previous[i];
        const Tensor far = (values[t] - batch.returns[i]).square(), limited = (moved - batch.returns[i]).square();
        distances.push_back((far.item<float>() > limited.item<float>() ? far : limited).reshape({1}));
      }
    }
    const Tensor loss = 0.5 * at::cat(distances).mean();
    backward(loss / 2);
    wanted_loss += loss.item<double>() / 2;
  }
  const Tensor before = weights_of(*critic).clone(), gradient = by_hand->parameters().flat_gradient();
  const std::vector<Metrics> updates = critic->train(batch);
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_NEAR(loss_of(updates[0]), wanted_loss, 1e-6);
  // Sums of fp32 numbers in another order: about a hundred roundings of 6e-8 each.
  EXPECT_LT(testing::relative_error((before - weights_of(*critic)) / 1e-2, gradient), 1e-4);
  EXPECT_NEAR(*updates[0].find("train/grad_norm"), gradient.norm().item<double>(), 1e-4 * gradient.norm().item<double>());
  EXPECT_EQ(*updates[0].find("train/lr"), 1e-2);
  EXPECT_TRUE(updates[0].find("train/step_time").has_value());
}

// Checklist 8: a batch that is no multiple of the update's is as if rows of zeros had been added by hand.
TEST(CriticModel, MissingRowsAreRowsOfZeros) {
  for (const int64_t num_rows : {1, 3, 5, 6, 11}) {
    const JudgeFolder folder;
    const auto critic = toy_critic(folder), padded = toy_critic(folder);
    const CriticBatch batch = toy_critic_batch(num_rows, 6, 9);
    CriticBatch more = batch;
    more.num_rows = (num_rows + 3) / 4 * 4;
    more.tokens.resize(static_cast<size_t>(more.num_rows * 6), 0);
    for (auto* numbers : {&more.returns, &more.previous, &more.mask}) numbers->resize(static_cast<size_t>(more.num_rows * 5), 0.0F);
    const std::vector<Metrics> updates = critic->train(batch), wanted = padded->train(more);
    ASSERT_EQ(updates.size(), static_cast<size_t>((num_rows + 3) / 4));
    EXPECT_EQ(critic->step(), (num_rows + 3) / 4);
    for (size_t i = 0; i < updates.size(); ++i) {
      EXPECT_TRUE(std::isfinite(loss_of(updates[i])));
      EXPECT_EQ(loss_of(updates[i]), loss_of(wanted[i]));
    }
    EXPECT_TRUE(same_bits(weights_of(*critic), weights_of(*padded))) << num_rows;
  }
}

// An empty micro-batch takes its share of the gradient, which is 0, and none of the reported mean.
TEST(CriticModel, AnEmptyMicroBatchIsNotPartOfTheReportedLoss) {
  const CriticBatch half{2, 3, {101, 7, 2, 5, 7, 2}, {0, 1, 0, 1}, {0.5, 0.25, 0.5, 0.25}, {0, 1, 0, 1}};
  EXPECT_NEAR(loss_of(constant_critic(0.6, toy_critic_options())->train(half)[0]), 0.15125, 1e-6);
  CriticBatch none = half;
  none.mask = {0, 0, 0, 0};
  EXPECT_EQ(loss_of(constant_critic(0.6, toy_critic_options())->train(none)[0]), 0);
}

TEST(CriticModel, NumbersOutsideTheMaskDoNotCount) {
  const JudgeFolder folder;
  const auto critic = toy_critic(folder), other = toy_critic(folder);
  const CriticBatch batch = toy_critic_batch(4, 8, 5);
  CriticBatch changed = batch;
  for (size_t i = 0; i < batch.mask.size(); ++i)
    if (batch.mask[i] == 0) changed.returns[i] = changed.previous[i] = std::nanf("");
  for (int64_t row = 0; row < 4; ++row) changed.tokens[static_cast<size_t>(row * 8 + 7)] = 0;  // no value is taken after the last token
  for (float& number : changed.mask) number *= 0.5F;                                           // a mask says yes or no
  static_cast<void>(critic->train(batch));
  static_cast<void>(other->train(changed));
  EXPECT_TRUE(same_bits(weights_of(*critic), weights_of(*other)));
}

TEST(CriticModel, SeveralAttributesAreMerged) {
  const JudgeFolder folder(3);
  CriticOptions options = toy_critic_options();
  const auto rows = testing::rows_of({4}, 256);
  const auto mean = toy_critic(folder, options);
  options.attribute_weights = {1, 0, 0};
  const auto first = toy_critic(folder, options);
  const NoGrad no_grad;
  const Tensor all = token_scores(mean->model(), pack_rows(rows, at::kCPU));
  EXPECT_TRUE(same_bits(mean->values(rows), all.mean(1)));
  EXPECT_TRUE(same_bits(first->values(rows), all.select(1, 0)));
}

// Checklist 13.
TEST(CriticModel, ASavedCriticGoesOnAsIfNothingHadHappened) {
  const JudgeFolder folder;
  for (const bool copies : {true, false}) {
    const testing::TempFolder temp;
    const auto critic = toy_critic(folder), again = toy_critic(folder);
    static_cast<void>(critic->train(toy_critic_batch(6, 8, 1)));
    StateSnapshot state(copies);
    const FolderWriter write = critic->save(state);
    state.write(temp / "state");
    write(temp / "model");
    const std::vector<Metrics> wanted = critic->train(toy_critic_batch(7, 8, 2));
    again->load(StateFiles(temp / "state"));
    EXPECT_EQ(again->step(), 2);
    const std::vector<Metrics> found = again->train(toy_critic_batch(7, 8, 2));
    for (const size_t i : {0, 1}) {
      EXPECT_EQ(loss_of(found[i]), loss_of(wanted[i]));
      EXPECT_EQ(*found[i].find("train/lr"), *wanted[i].find("train/lr"));
    }
    EXPECT_TRUE(same_bits(weights_of(*again), weights_of(*critic)));
    EXPECT_EQ(load_model(temp / "model", {.storage = {}, .head = HeadKind::score})->head().num_labels, 1);
  }
}

TEST(CriticModel, GradientsThatAreNoNumbersAreLeftOut) {
  CriticOptions options = toy_critic_options();
  options.update.max_skipped_updates = 1;
  const auto critic = constant_critic(3e38, options);  // its square is infinite
  const CriticBatch batch{1, 2, {1, 2}, {0}, {0}, {1}};
  EXPECT_EQ(*critic->train(batch)[0].find("train/skipped_updates"), 1);
  EXPECT_NE(error_of<Error>([&] { return critic->train(batch); }).find("2 updates in a row"), std::string::npos);
}

TEST(CriticModel, SettingsThatLearnInAnotherWayHaveAnotherName) {
  const JudgeFolder folder;
  const std::string wanted = toy_critic(folder)->settings();
  EXPECT_EQ(toy_critic(folder)->settings(), wanted);
  const auto changed = [&](const auto& change) {
    CriticOptions options = toy_critic_options();
    change(options);
    return toy_critic(folder, options)->settings();
  };
  EXPECT_EQ(changed([](auto& options) { options.forward_tokens = 9; }), wanted);
  EXPECT_NE(changed([](auto& options) { options.optim.lr = 1e-5; }), wanted);
  EXPECT_NE(changed([](auto& options) { options.global_batch_size = 8; }), wanted);
  EXPECT_NE(changed([](auto& options) { options.loss_clip_val = 0; }), wanted);
  EXPECT_NE(changed([](auto& options) { options.update.gradient_clip_val = 0.1; }), wanted);
  EXPECT_NE(changed([](auto& options) { options.standardization = {true, 0, 1}; }), wanted);
  EXPECT_NE(changed([](auto& options) { options.attribute_weights = {2}; }), wanted);
}

// How the reward model is kept, what the network computes with, and whether adapters are trained.
struct Kept {
  ReferenceKind kind;
  at::ScalarType dtype = at::kFloat;
  bool adapters = false;
};
class CriticRewards : public ::testing::TestWithParam<Kept> {
 protected:
  [[nodiscard]] static std::unique_ptr<CriticModel> make(const JudgeFolder& folder, bool gives_rewards) {
    const CriticOptions options = gives_rewards ? testing::toy_rewarding_options(GetParam().kind) : toy_critic_options();
    const StorageOptions storage{.dtype = GetParam().dtype, .trainable = true};
    if (GetParam().adapters) return testing::toy_adapted_critic(folder, options, storage);
    return std::make_unique<CriticModel>(folder.load(storage), options);
  }
};

// Checklist 7. Rewards are those of the folder, whatever the critic learns, and learning is as without them.
TEST_P(CriticRewards, AreThoseOfTheUntouchedFolder) {
  const JudgeFolder folder;
  const auto rows = testing::rows_of({3, 9, 1, 5, 30}, 256);
  const auto judge = folder.load(StorageOptions{.dtype = GetParam().dtype});
  const Tensor wanted = RewardScorer(*judge, {.max_tokens = 20}).score(rows);
  const auto critic = make(folder, true), alone = make(folder, false);
  EXPECT_TRUE(critic->gives_rewards());
  EXPECT_FALSE(alone->gives_rewards());
  EXPECT_TRUE(same_bits(critic->rewards(rows), wanted));
  const Tensor first = critic->values(rows);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(loss_of(critic->train(toy_critic_batch(6, 8, i)).back()), loss_of(alone->train(toy_critic_batch(6, 8, i)).back()));
    EXPECT_TRUE(same_bits(critic->rewards(rows), wanted)) << i;
    EXPECT_TRUE(same_bits(critic->values(rows), alone->values(rows))) << i;
  }
  EXPECT_FALSE(same_bits(critic->values(rows), first));
  EXPECT_FALSE(same_bits(critic->model().score_head().weight, judge->score_head().weight)) << "the head learns too";
  EXPECT_TRUE(same_bits(critic->model().trained().flat_master(), alone->model().trained().flat_master()));
}

TEST_P(CriticRewards, SurviveALoad) {
  const JudgeFolder folder;
  const testing::TempFolder temp;
  const auto rows = testing::rows_of({3, 9, 1, 5}, 256);
  const auto critic = make(folder, true), again = make(folder, true);
  const Tensor wanted = critic->rewards(rows);
  static_cast<void>(critic->train(toy_critic_batch(6, 8, 1)));
  StateSnapshot state(false);
  static_cast<void>(critic->save(state));
  state.write(temp / "state");
  again->load(StateFiles(temp / "state"));
  EXPECT_TRUE(same_bits(again->rewards(rows), wanted));
  EXPECT_TRUE(same_bits(again->values(rows), critic->values(rows)));
}
INSTANTIATE_TEST_SUITE_P(All, CriticRewards,
                         ::testing::Values(Kept{ReferenceKind::resident}, Kept{ReferenceKind::swapped},
                                           Kept{ReferenceKind::resident, at::kBFloat16}, Kept{ReferenceKind::swapped, at::kBFloat16},
                                           Kept{ReferenceKind::resident, at::kFloat, true}, Kept{ReferenceKind::swapped, at::kFloat, true},
                                           Kept{ReferenceKind::swapped, at::kBFloat16, true}));

TEST(CriticModel, SettingsThatCannotBe) {
  const JudgeFolder folder;
  CriticOptions options = toy_critic_options();
  options.micro_batch_size = 3;
  EXPECT_EQ(error_of([&] { return toy_critic(folder, options)->step(); }),
            "model.global_batch_size: 4 rows do not divide into micro-batches of 3");
  options = toy_critic_options();
  options.attribute_weights = {1, 2};
  EXPECT_EQ(error_of([&] { return toy_critic(folder, options)->step(); }), "model.regression.attribute_weights: 2 weights for 1 labels");
  options = testing::toy_rewarding_options();
  options.rewards->standardization.enable = true;
  options.rewards->is_regression = true;
  EXPECT_EQ(error_of([&] { return toy_critic(folder, options)->step(); }),
            "model.reward_standardization: standardises the one reward of a ranking model; this one has 1 attribute");
}

}  // namespace
}  // namespace kedge
