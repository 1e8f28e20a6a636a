#include "kedge/algo/supervised/preference_losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "kedge/core/autograd.h"

namespace kedge {
namespace {

// The rounding of the spec's printed values.
constexpr double kPrintedDigits = 5e-7;

Tensor doubles(std::vector<double> values) { return at::tensor(values, at::kDouble); }

double dpo(DpoLoss kind, double margin, double gap, double beta = 0.1, double smoothing = 0) {
  return dpo_losses({kind, beta, smoothing}, doubles({margin}), doubles({gap})).item<double>();
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// spec/models-data-ops.md 8.3: beta 0.1, margin 3, gap 1
TEST(PreferenceLosses, OfTheSpec) {
  EXPECT_NEAR(dpo(DpoLoss::dpo, 3, 1), 0.554355, kPrintedDigits);
  EXPECT_NEAR(dpo(DpoLoss::ipo, 3, 1), 4.0, kPrintedDigits);
  EXPECT_NEAR(dpo(DpoLoss::rpo_sq, 3, 1), 0.49, kPrintedDigits);
  EXPECT_NEAR(dpo(DpoLoss::rpo_bwd_kl, 3, 1), 0.052835, kPrintedDigits);
  EXPECT_NEAR(dpo(DpoLoss::rpo_fwd_kl, 3, 1), 0.056797, kPrintedDigits);
}

// spec/models-data-ops.md 9: beta 0.2, log-ratio 2, estimate 0.5
TEST(PreferenceLosses, OfTheSpecForSingleResponses) {
  const Tensor found = kto_losses({0.2}, doubles({2, 2}), at::tensor({1, 0}).to(at::kBool), 0.5);
  EXPECT_NEAR(found[0].item<double>(), 0.425557, kPrintedDigits);
  EXPECT_NEAR(found[1].item<double>(), 0.574443, kPrintedDigits);
  const Tensor weighted = kto_losses({0.2, 2, 3}, doubles({2, 2}), at::tensor({1, 0}).to(at::kBool), 0.5);
  EXPECT_DOUBLE_EQ(weighted[0].item<double>(), 2 * found[0].item<double>());
  EXPECT_DOUBLE_EQ(weighted[1].item<double>(), 3 * found[1].item<double>());
}

TEST(PreferenceLosses, AHingeEndsAtAMarginOfOneOverBeta) {
  EXPECT_DOUBLE_EQ(dpo(DpoLoss::hinge, 3, 0), 0.7);
  EXPECT_DOUBLE_EQ(dpo(DpoLoss::hinge, -3, 0), 1.3);
  EXPECT_DOUBLE_EQ(dpo(DpoLoss::hinge, 12, 0), 0);
}

// -(1 - e) log sigmoid(bd) - e log sigmoid(-bd)
TEST(PreferenceLosses, SmoothedLabelsExpectSomePairsTheWrongWayRound) {
  const double right = -std::log(sigmoid(0.3)), wrong = -std::log(sigmoid(-0.3));
  EXPECT_NEAR(dpo(DpoLoss::dpo, 3, 0, 0.1, 0.25), 0.75 * right + 0.25 * wrong, 1e-12);
}

TEST(PreferenceLosses, StayFiniteFarAway) {
  for (const DpoLoss kind : {DpoLoss::dpo, DpoLoss::rpo_bwd_kl, DpoLoss::rpo_fwd_kl}) {
    EXPECT_TRUE(std::isfinite(dpo(kind, 1e4, 1, 1)));
    EXPECT_TRUE(std::isfinite(dpo(kind, -1e4, 1, 1)));
  }
}

// Of a function of [3], by central differences.
void expect_gradient(const std::function<Tensor(const Tensor&)>& losses, const std::vector<double>& at) {
  Tensor x = doubles(at).requires_grad_(true);
  backward(losses(x).sum());
  constexpr double kStep = 1e-6;
  for (size_t i = 0; i < at.size(); ++i) {
    std::vector<double> above = at, below = at;
    above[i] += kStep, below[i] -= kStep;
    const double wanted = (losses(doubles(above)).sum() - losses(doubles(below)).sum()).item<double>() / (2 * kStep);
    EXPECT_NEAR(x.grad()[static_cast<int64_t>(i)].item<double>(), wanted, 1e-7);
  }
}

TEST(PreferenceLosses, GradientsAreTheirSlopes) {
  const std::vector<double> margins = {-4, 0.3, 7};
  const Tensor gaps = doubles({1, -0.5, 2});
  for (const DpoLoss kind : {DpoLoss::dpo, DpoLoss::ipo, DpoLoss::hinge, DpoLoss::rpo_sq, DpoLoss::rpo_bwd_kl, DpoLoss::rpo_fwd_kl})
    expect_gradient([&](const Tensor& x) { return dpo_losses({kind, 0.3, kind == DpoLoss::dpo ? 0.1 : 0}, x, gaps); }, margins);
  const Tensor desirable = at::tensor({1, 0, 1}).to(at::kBool);
  expect_gradient([&](const Tensor& x) { return kto_losses({0.3, 1.5, 0.5}, x, desirable, 0.7); }, margins);
}

}  // namespace
}  // namespace kedge
