#include "kedge/model/parameters.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/tensors.h"

namespace kedge {
namespace {

using Init = ParameterSpec::Init;
using testing::same_bits;

std::vector<ParameterSpec> specs() {
  return {{"w", {3, 50}, true, Init::normal},
          {"n", {5}, false, Init::ones},
          {"v", {200, 2}, true, Init::normal},
          {"b", {7}, false, Init::zeros}};
}

TEST(Parameters, SlicesHaveTheirShapesAndDoNotOverlap) {
  const Parameters parameters(specs(), {.trainable = true});
  EXPECT_EQ(parameters.num_elements(), 150 + 5 + 400 + 7);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(parameters.value(i).sizes().vec(), specs()[static_cast<size_t>(i)].shape);
    parameters.gradient(i).fill_(i + 1);
  }
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(parameters.gradient(i).sum().item<float>(), static_cast<float>((i + 1) * parameters.gradient(i).numel()));
  EXPECT_EQ(parameters.flat_gradient().sum().item<float>(), 150 + 2 * 5 + 3 * 400 + 4 * 7);  // nothing in the gaps
}

TEST(Parameters, WhatDecaysLiesFirst) {
  const Parameters parameters(specs(), {.trainable = true});
  for (int i = 0; i < 4; ++i) parameters.value(i).fill_(specs()[static_cast<size_t>(i)].decays ? 1 : 10);
  EXPECT_EQ(parameters.flat().narrow(0, 0, parameters.num_decaying()).sum().item<float>(), 550);
  EXPECT_EQ(
      parameters.flat().narrow(0, parameters.num_decaying(), parameters.flat().numel() - parameters.num_decaying()).sum().item<float>(),
      120);
}

TEST(Parameters, FrozenStorageHasNoGradientsAndNoSecondCopy) {
  const Parameters parameters(specs(), {.dtype = at::kBFloat16});
  EXPECT_FALSE(parameters.flat_gradient().defined());
  EXPECT_FALSE(parameters.gradient(0).defined());
  EXPECT_TRUE(parameters.flat().is_same(parameters.flat_master()));
  EXPECT_EQ(parameters.value(0).scalar_type(), at::kBFloat16);
}

TEST(Parameters, Bf16TrainingKeepsFp32MastersAndPublishesThem) {
  Parameters parameters(specs(), {.dtype = at::kBFloat16, .trainable = true});
  EXPECT_EQ(parameters.value(0).scalar_type(), at::kBFloat16);
  EXPECT_EQ(parameters.master(0).scalar_type(), at::kFloat);
  EXPECT_EQ(parameters.gradient(0).scalar_type(), at::kFloat);
  parameters.master(0).fill_(1.001);
  EXPECT_EQ(parameters.value(0).sum().item<float>(), 0);
  const void* address = parameters.value(0).data_ptr();
  parameters.publish();
  EXPECT_TRUE(same_bits(parameters.value(0), at::full({3, 50}, 1.001F).to(at::kBFloat16)));
  EXPECT_EQ(parameters.value(0).data_ptr(), address);
}

TEST(Parameters, InitialValuesDependOnSeedAndPlaceAlone) {
  Parameters first(specs(), {}), second(specs(), {.dtype = at::kBFloat16, .trainable = true}), third(specs(), {});
  first.initialise(7, 0.02);
  second.initialise(7, 0.02);
  third.initialise(8, 0.02);
  EXPECT_TRUE(same_bits(first.value(2), second.master(2)));
  EXPECT_TRUE(same_bits(second.value(2), second.master(2).to(at::kBFloat16)));
  EXPECT_FALSE(same_bits(first.value(2), third.value(2)));
  EXPECT_FALSE(same_bits(first.value(0).view({-1}), first.value(2).view({-1}).narrow(0, 0, 150)));
  EXPECT_TRUE(same_bits(first.value(1), at::ones({5})));
  EXPECT_TRUE(same_bits(first.value(3), at::zeros({7})));
  third.initialise(2, 7, 0.02);
  EXPECT_TRUE(same_bits(third.value(2), first.value(2)));
}

// 100,000 draws: the mean's own deviation is 0.02 / 316, that of the deviation 0.02 / 447; five of them are allowed.
TEST(Parameters, NormalValuesHaveTheRangeAskedFor) {
  Parameters parameters({{"w", {1000, 100}, true, Init::normal}}, {});
  parameters.initialise(1, 0.02);
  EXPECT_NEAR(parameters.value(0).mean().item<double>(), 0, 5 * 0.02 / 316);
  EXPECT_NEAR(parameters.value(0).std().item<double>(), 0.02, 5 * 0.02 / 447);
}

// They are drawn a million at a time; what comes behind is new.
TEST(Parameters, LargeParametersRepeatNoValues) {
  Parameters parameters({{"w", {1200, 1000}, true, Init::normal}}, {});
  parameters.initialise(1, 0.02);
  const Tensor flat = parameters.value(0).view({-1});
  const Tensor rest = flat.narrow(0, 1 << 20, 1'200'000 - (1 << 20));
  EXPECT_FALSE(same_bits(rest, flat.narrow(0, 0, rest.numel())));
  EXPECT_NEAR(rest.std().item<double>(), 0.02, 5 * 0.02 / std::sqrt(2.0 * 151'000));
}

TEST(Parameters, AFlatBufferCountsWhatLiesBetweenTheSlices) {
  EXPECT_EQ(flat_size(specs()), Parameters(specs(), {}).flat().numel());
  EXPECT_EQ(flat_size({}), 0);
}

}  // namespace
}  // namespace kedge
