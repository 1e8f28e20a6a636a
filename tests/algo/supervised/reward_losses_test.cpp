#include "kedge/algo/supervised/reward_losses.h"

#include <gtest/gtest.h>

#include "kedge/core/autograd.h"
#include "kedge/core/error.h"

namespace kedge {
namespace {

// The rounding of the spec's printed values.
constexpr double kPrinted = 5e-7;

double number(const Tensor& tensor) { return tensor.item<double>(); }

// spec/models-data-ops.md 5.5
TEST(RewardLosses, OfTheSpec) {
  EXPECT_NEAR(number(ranking_losses(at::tensor({1.2F}), at::tensor({0.7F}))), 0.474077, kPrinted);
  const Tensor scores = at::tensor({1.0F, 2.0F, 3.0F}).unsqueeze(0), labels = at::tensor({1.0F, -100.0F, 1.0F}).unsqueeze(0);
  EXPECT_DOUBLE_EQ(number(regression_loss(scores, labels, -100)), 2);
  const Tensor better = at::tensor(0.75), worse = at::tensor(0.25);
  EXPECT_NEAR(number(strength_loss(PreferenceLoss::regular_bt, better, worse, -2)), 0.474077, kPrinted);
  EXPECT_NEAR(number(strength_loss(PreferenceLoss::margin_bt, better, worse, -2)), 1.701413, kPrinted);
  EXPECT_NEAR(number(strength_loss(PreferenceLoss::scaled_bt, better, worse, -2)), 0.948154, kPrinted);
}

TEST(RewardLosses, TheSignSaysWhoIsBetter) {
  const Tensor high = at::tensor(0.75), low = at::tensor(0.25);
  const double right = number(strength_loss(PreferenceLoss::margin_bt, low, high, 3));
  EXPECT_EQ(number(strength_loss(PreferenceLoss::margin_bt, high, low, -3)), right);
  EXPECT_GT(number(strength_loss(PreferenceLoss::margin_bt, high, low, 3)), right);
  // No preference at all counts as B's.
  EXPECT_EQ(number(strength_loss(PreferenceLoss::regular_bt, low, high, 0)),
            number(strength_loss(PreferenceLoss::regular_bt, low, high, 1)));
  EXPECT_EQ(number(strength_loss(PreferenceLoss::scaled_bt, low, high, 0)), 0);
}

TEST(RewardLosses, LargeDistancesStayFinite) {
  EXPECT_NEAR(number(ranking_losses(at::tensor({-300.0F}), at::tensor({300.0F}))), 600, 1e-4);
  EXPECT_EQ(number(ranking_losses(at::tensor({300.0F}), at::tensor({-300.0F}))), 0);
}

TEST(RewardLosses, WithoutAnyLabelIsABug) {
  EXPECT_THROW(static_cast<void>(regression_loss(at::zeros({1, 2}), at::full({1, 2}, -100), -100)), Bug);
}

// Slopes against finite differences in double numbers: the error of a central difference of 1e-5 is far below 1e-6 here.
TEST(RewardLosses, GradientsAreTheSlopes) {
  using Loss = std::function<Tensor(const Tensor&)>;
  const Tensor labels = at::tensor({0.5, -100.0, 2.0, 1.0}).view({2, 2});
  const std::vector<Loss> losses = {
      [](const Tensor& x) { return ranking_losses(x.narrow(0, 0, 2), x.narrow(0, 2, 2)).mean(); },
      [&](const Tensor& x) {
        return regression_loss(x.view({2, 2}), labels, -100);
      },
      [](const Tensor& x) { return strength_loss(PreferenceLoss::margin_bt, x[0], x[1], -2); },
      [](const Tensor& x) { return strength_loss(PreferenceLoss::scaled_bt, x[0], x[1], 3); },
  };
  for (size_t which = 0; which < losses.size(); ++which) {
    const Tensor x = at::tensor({0.3, -0.8, 1.1, 0.2}).requires_grad_(true);
    backward(losses[which](x));
    for (int64_t i = 0; i < 4; ++i) {
      const NoGrad no_grad;
      constexpr double kStep = 1e-5;
      Tensor up = x.clone(), down = x.clone();
      up[i] += kStep;
      down[i] -= kStep;
      EXPECT_NEAR(number(x.grad()[i]), (number(losses[which](up)) - number(losses[which](down))) / (2 * kStep), 1e-8) << which << " " << i;
    }
  }
}

}  // namespace
}  // namespace kedge
