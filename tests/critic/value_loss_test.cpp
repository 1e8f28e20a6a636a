#include "kedge/critic/value_loss.h"

#include <gtest/gtest.h>

#include "kedge/core/autograd.h"

namespace kedge {
namespace {

Tensor rows(const std::vector<float>& numbers) { return at::tensor(numbers).view({2, 3}); }

// spec/trainers.md 21.9
const Tensor kValues = rows({0.5F, -0.1F, 0.9F, 0.2F, 0.4F, 0.0F});
const ValueTargets kTargets = {rows({0.1F, 0.0F, 0.85F, 0.6F, 0.3F, 0.1F}), rows({0.3F, 0.4F, 1.0F, 0.0F, 0.5F, 0.2F}),
                               rows({0, 1, 1, 1, 1, 1})};

double loss_of(int64_t row, int64_t count, double clip) {
  const auto part = [&](const Tensor& all) { return all.narrow(0, row, count); };
  return value_loss(part(kValues), {part(kTargets.previous), part(kTargets.returns), part(kTargets.mask)}, clip).item<double>();
}

TEST(ValueLoss, OfTheSpec) {
  constexpr double kPrinted = 5e-7;  // the rounding of the printed values
  EXPECT_NEAR(loss_of(0, 2, 0.2), 0.047000, kPrinted);
  EXPECT_NEAR(loss_of(0, 1, 0.2), 0.065, kPrinted);
  EXPECT_NEAR(loss_of(1, 1, 0.2), 0.035, kPrinted);
  EXPECT_NEAR(loss_of(0, 2, 0), 0.035000, kPrinted);
  EXPECT_NEAR(loss_of(0, 1, 0), 0.065, kPrinted);
  EXPECT_NEAR(loss_of(1, 1, 0), 0.015, kPrinted);
  // spec/servers.md 3.4
  const auto one = [](float x) { return at::full({1, 1}, x); };
  EXPECT_NEAR(value_loss(one(0.6F), {one(0.25F), one(1), one(1)}, 0.2).item<double>(), 0.15125, kPrinted);
}

TEST(ValueLoss, AValueThatMovedTooFarHasNoSlope) {
  const Tensor values = at::tensor({0.6F, 0.3F}).view({1, 2}).requires_grad_(true);
  const ValueTargets targets = {at::full({1, 2}, 0.25), at::ones({1, 2}), at::ones({1, 2})};
  backward(value_loss(values, targets, 0.2));
  EXPECT_EQ(values.grad()[0][0].item<float>(), 0);  // its limited value is farther from the return, and counts
  EXPECT_NEAR(values.grad()[0][1].item<double>(), (0.3 - 1) / 2, 1e-6);
}

TEST(ValueLoss, WithoutAnyPlaceThereIsNone) {
  EXPECT_FALSE(value_loss(kValues, {kTargets.previous, kTargets.returns, at::zeros({2, 3})}, 0.2).defined());
}

}  // namespace
}  // namespace kedge
