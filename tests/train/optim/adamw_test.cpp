#include "kedge/train/optim/adamw.h"

#include <gtest/gtest.h>

#include <cmath>

#include <ATen/Parallel.h>

#include "kedge/train/optim/cuda_adamw.h"

#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::normals;
using testing::relative_error;
using testing::same_bits;

AdamWTensors tensors_of(int64_t size, at::ScalarType moments = at::kFloat, bool published = false) {
  return {normals({size}, 1), normals({size}, 2), at::zeros({size}, moments), at::zeros({size}, moments),
          published ? at::zeros({size}, at::kBFloat16) : Tensor()};
}

// The published algorithm in double precision, one number at a time.
struct Reference {
  double weight, first = 0, second = 0;

  void update(double gradient, const AdamWStep& s) {
    gradient *= s.grad_scale;
    first = s.beta1 * first + (1 - s.beta1) * gradient;
    second = s.beta2 * second + (1 - s.beta2) * gradient * gradient;
    const double first_hat = first / (1 - std::pow(s.beta1, static_cast<double>(s.step)));
    const double second_hat = second / (1 - std::pow(s.beta2, static_cast<double>(s.step)));
    weight -= s.lr * (first_hat / (std::sqrt(second_hat) + s.eps) + s.weight_decay * weight);
  }
};

// The first step of Adam moves every weight by lr against the sign of its gradient: 1 - 0.1 * 1 and -2 + 0.1 * 1, then decay 0.1 * 0.5 * w.
TEST(AdamW, TheFirstStepByHand) {
  const AdamWTensors t{at::tensor({1.0F, -2.0F}), at::tensor({0.5F, -4.0F}), at::zeros({2}), at::zeros({2}), {}};
  adamw_update(t, {.lr = 0.1, .beta1 = 0.9, .beta2 = 0.98, .eps = 0, .weight_decay = 0.5, .step = 1});
  EXPECT_NEAR(t.master[0].item<double>(), 1 - 0.05 - 0.1, 1e-6);
  EXPECT_NEAR(t.master[1].item<double>(), -2 + 0.1 + 0.1, 1e-6);
  EXPECT_NEAR(t.first[0].item<double>(), 0.05, 1e-7);
  EXPECT_NEAR(t.second[1].item<double>(), 0.02 * 16, 1e-7);
}

TEST(AdamW, ThreeStepsEqualTheAlgorithmInDoublePrecision) {
  constexpr int64_t kSize = 37;
  const AdamWTensors t = tensors_of(kSize);
  std::vector<Reference> wanted;
  for (int64_t i = 0; i < kSize; ++i) wanted.push_back({t.master[i].item<double>()});
  for (int64_t step = 1; step <= 3; ++step) {
    t.gradient.copy_(normals({kSize}, 10 + static_cast<uint64_t>(step)));
    const AdamWStep s{.lr = 0.01, .eps = 1e-6, .weight_decay = 0.1, .step = step, .grad_scale = 0.5};
    adamw_update(t, s);
    for (int64_t i = 0; i < kSize; ++i) wanted[static_cast<size_t>(i)].update(t.gradient[i].item<double>(), s);
  }
  for (int64_t i = 0; i < kSize; ++i) {
    const Reference& one = wanted[static_cast<size_t>(i)];
    EXPECT_NEAR(t.master[i].item<double>(), one.weight, 1e-6);
    EXPECT_NEAR(t.first[i].item<double>(), one.first, 1e-7);
    EXPECT_NEAR(t.second[i].item<double>(), one.second, 1e-7);
  }
}

TEST(AdamW, ScaledGradientsAreGradientsOfThatScale) {
  const AdamWTensors scaled = tensors_of(20), plain = tensors_of(20);
  plain.gradient.mul_(0.25);
  adamw_update(scaled, {.lr = 0.1, .grad_scale = 0.25});
  adamw_update(plain, {.lr = 0.1});
  EXPECT_TRUE(same_bits(scaled.master, plain.master));
  EXPECT_TRUE(same_bits(scaled.second, plain.second));
}

TEST(AdamW, PublishedWeightsAreTheRoundedMasters) {
  const AdamWTensors with = tensors_of(300, at::kFloat, true), without = tensors_of(300);
  adamw_update(with, {.lr = 0.1});
  adamw_update(without, {.lr = 0.1});
  EXPECT_TRUE(same_bits(with.master, without.master));
  EXPECT_TRUE(same_bits(with.published, with.master.to(at::kBFloat16)));
}

// Moments rounded to 8 bits: an update differs by about 2^-8 of itself a step, the weights by that times lr.
TEST(AdamW, Bf16MomentsAreClose) {
  const AdamWTensors wide = tensors_of(300), narrow = tensors_of(300, at::kBFloat16);
  for (int64_t step = 1; step <= 5; ++step) {
    const Tensor gradient = normals({300}, 10 + static_cast<uint64_t>(step));
    wide.gradient.copy_(gradient), narrow.gradient.copy_(gradient);
    adamw_update(wide, {.lr = 0.1, .step = step});
    adamw_update(narrow, {.lr = 0.1, .step = step});
  }
  EXPECT_LT(relative_error(narrow.first, wide.first), 0x1p-6);
  EXPECT_LT(relative_error(narrow.second, wide.second), 0x1p-6);
  EXPECT_LT(testing::largest_difference(narrow.master, wide.master), 5 * 0.1 * 0x1p-5);
}

TEST(AdamW, TheNumberOfThreadsChangesNoBit) {
  const int before = at::get_num_threads();
  const auto run = [](int threads) {
    at::set_num_threads(threads);
    const AdamWTensors t = tensors_of(100'003);
    adamw_update(t, {.lr = 0.1, .weight_decay = 0.1});
    return t.master;
  };
  EXPECT_TRUE(same_bits(run(1), run(3)));
  at::set_num_threads(before);
}

TEST(AdamW, ZeroGradientsOfZeroWeightsStayZeroAndNothingIsNothing) {
  const AdamWTensors t{at::zeros({4}), at::zeros({4}), at::zeros({4}), at::zeros({4}), {}};
  for (int64_t step = 1; step <= 3; ++step) adamw_update(t, {.lr = 0.1, .weight_decay = 0.1, .step = step});
  EXPECT_TRUE(same_bits(t.master, at::zeros({4})));
  adamw_update(tensors_of(0), {.lr = 0.1});
}

TEST(AdamW, AStepsFactors) {
  const AdamWFactors f = factors_of({.lr = 0.1, .beta1 = 0.9, .beta2 = 0.75, .eps = 1e-3, .weight_decay = 0.5, .step = 2, .grad_scale = 3});
  EXPECT_FLOAT_EQ(f.keep, 0.95F);
  EXPECT_FLOAT_EQ(f.rate, static_cast<float>(0.1 / 0.19));
  EXPECT_FLOAT_EQ(f.second_scale, static_cast<float>(1 / std::sqrt(1 - 0.5625)));
  EXPECT_FLOAT_EQ(f.one_minus_beta2, 0.25F);
  EXPECT_FLOAT_EQ(f.grad_scale, 3);
}

}  // namespace
}  // namespace kedge
