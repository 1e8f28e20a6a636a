#include "kedge/train/optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::batch_of;
using testing::error_of;
using testing::normals;
using testing::relative_error;
using testing::same_bits;
using testing::tiny_model;
using testing::token_loss;

using Init = ParameterSpec::Init;
std::vector<ParameterSpec> specs() {
  return {{"w", {3, 50}, true, Init::normal}, {"n", {5}, false, Init::ones}, {"b", {7}, false, Init::zeros}};
}

TEST(Optimizer, MatricesDecayAndNormsAndBiasesDoNot) {
  Parameters parameters(specs(), {.trainable = true});
  parameters.initialise(1, 0.5);
  parameters.master(2).fill_(3);
  const Tensor before = parameters.master(0).clone();
  Optimizer optimizer({.weight_decay = 0.1}, parameters);
  optimizer.step(0.01);  // gradients are zero: only decay moves anything
  EXPECT_LT(relative_error(parameters.master(0), before * (1 - 0.001)), 1e-6);
  EXPECT_TRUE(same_bits(parameters.master(1), at::ones({5})));
  EXPECT_TRUE(same_bits(parameters.master(2), at::full({7}, 3.0F)));
}

TEST(Optimizer, TheGradientNormIsThatOfAllGradients) {
  Parameters parameters(specs(), {.trainable = true});
  Optimizer optimizer({}, parameters);
  EXPECT_EQ(optimizer.gradient_norm(), 0);
  parameters.gradient(0)[1][2].fill_(3);
  parameters.gradient(2)[6].fill_(-4);
  EXPECT_NEAR(optimizer.gradient_norm(), 5, 1e-6);
  optimizer.zero_gradients();
  EXPECT_EQ(optimizer.gradient_norm(), 0);
}

// spec/trainers.md 21.9
TEST(Optimizer, ClippingIsThatOfTheSpec) {
  EXPECT_NEAR(clip_coefficient(5, 1), 0.199999960, 1e-9);
  EXPECT_NEAR(3 * clip_coefficient(5, 1), 0.599999880, 1e-9);
  EXPECT_EQ(clip_coefficient(0.5, 1), 1);
  EXPECT_EQ(clip_coefficient(0, 1), 1);
  EXPECT_EQ(clip_coefficient(5, 0), 1);
  EXPECT_EQ(clip_coefficient(5, -1), 1);
}

TEST(Optimizer, GapsBetweenSlicesStayZero) {
  for (const MomentType moments : {MomentType::fp32, MomentType::bf16}) {
    Parameters parameters(specs(), {.dtype = at::kBFloat16, .trainable = true});
    parameters.initialise(1, 0.5);
    Optimizer optimizer({.moments = moments}, parameters);
    const auto outside = [&](const Tensor& flat) {
      Tensor rest = flat.to(at::kFloat, false, true);
      rest.narrow(0, 0, 150).zero_(), rest.narrow(0, parameters.num_decaying(), 5).zero_(),
          rest.narrow(0, parameters.num_decaying() + 128, 7).zero_();
      return rest.abs().max().item<double>();
    };
    for (int i = 0; i < 3; ++i) parameters.gradient(i).copy_(normals(parameters.gradient(i).sizes(), 5));
    for (int step = 0; step < 3; ++step) optimizer.step(0.1);
    for (const Tensor& flat : {parameters.flat(), parameters.flat_master(), optimizer.first_moment(), optimizer.second_moment()})
      EXPECT_EQ(outside(flat), 0);
    EXPECT_GT(optimizer.first_moment().abs().max().item<double>(), 0.1);
  }
}

TEST(Optimizer, WhatIsPublishedIsTheMasterAfterEveryStep) {
  const auto model = tiny_model(testing::kTinyLlama, {.dtype = at::kBFloat16, .trainable = true});
  Optimizer optimizer({}, model->parameters());
  const Tensor before = model->parameters().flat().clone();
  backward(token_loss(*model, batch_of({9, 5})));
  optimizer.step(0.01);
  EXPECT_FALSE(same_bits(model->parameters().flat(), before));
  EXPECT_TRUE(same_bits(model->parameters().flat(), model->parameters().flat_master().to(at::kBFloat16)));
}

TEST(Optimizer, OnlyAdaptersChangeWhereThereAreAny) {
  const auto model = tiny_model(testing::kTinyLlama, {});
  LoraConfig lora;
  lora.adapter_dim = 4;
  model->add_adapters(lora, true);
  model->adapters()->initialise(1);
  const Tensor base = model->parameters().flat().clone(), adapters = model->adapters()->parameters().flat().clone();
  Optimizer optimizer({}, model->trained());
  for (int step = 0; step < 2; ++step) {  // in the first, gradients reach only the Bs: those of the As pass through a B of zeros
    optimizer.zero_gradients();
    backward(token_loss(*model, batch_of({9, 5})));
    optimizer.step(0.01);
  }
  EXPECT_TRUE(same_bits(model->parameters().flat(), base));
  for (size_t i = 0; i < model->adapters()->parameters().specs().size(); ++i)
    EXPECT_GT(model->adapters()->parameters().gradient(static_cast<int>(i)).abs().max().item<double>(), 0);
  EXPECT_FALSE(same_bits(model->adapters()->parameters().flat(), adapters));
}

TEST(Optimizer, AModelLearnsItsRows) {
  const auto model = tiny_model(testing::kTinyGpt2);
  Optimizer optimizer({.weight_decay = 0}, model->parameters());
  const PackedBatch batch = batch_of({9, 5});
  const auto loss = [&] { return -model_logprobs(*model, batch, predicted_tokens(batch)).logprobs.mean(); };
  const double before = loss().item<double>();
  for (int step = 0; step < 60; ++step) {
    optimizer.zero_gradients();
    backward(loss());
    optimizer.step(0.01);
  }
  EXPECT_EQ(optimizer.num_steps(), 60);
  EXPECT_GT(before, 2);
  EXPECT_LT(loss().item<double>(), 0.1);
}

// With the moments and the number of steps taken over, a second optimizer goes on exactly where the first stopped.
TEST(Optimizer, ItsStateIsAllOfIt) {
  const auto start = [] {
    auto parameters = std::make_unique<Parameters>(specs(), StorageOptions{.trainable = true});
    parameters->initialise(1, 0.5);
    return parameters;
  };
  const auto run = [](Optimizer& optimizer, Parameters& parameters, int from, int to) {
    for (int step = from; step < to; ++step) {
      parameters.flat_gradient().copy_(normals(parameters.flat_gradient().sizes(), static_cast<uint64_t>(step)));
      optimizer.step(0.1, 0.5);
    }
  };
  const auto whole = start(), split = start();
  Optimizer unbroken({}, *whole), first({}, *split);
  run(unbroken, *whole, 0, 6);
  run(first, *split, 0, 3);
  Optimizer second({}, *split);
  const testing::TempFolder temp;
  StateSnapshot snapshot;
  first.save(snapshot);
  snapshot.write(temp.path());
  second.load(StateFiles(temp.path()));
  run(second, *split, 3, 6);
  EXPECT_TRUE(same_bits(whole->flat(), split->flat()));
  EXPECT_TRUE(same_bits(unbroken.second_moment(), second.second_moment()));
}

// w = [1, -2], g = [0.5, 4], scaled by 0.5, rate 0.1, decay 0.2: w - 0.1 (0.5 g + 0.2 w); norms and biases without the decay.
TEST(Optimizer, SgdDescendsAlongTheGradientWithDecayOfMatrices) {
  Parameters parameters({{"w", {1, 2}, true, Init::normal}, {"b", {2}, false, Init::zeros}}, {.trainable = true});
  for (const int place : {0, 1}) {
    parameters.master(place).copy_(at::tensor({1.0, -2.0}).view(parameters.master(place).sizes()));
    parameters.gradient(place).copy_(at::tensor({0.5, 4.0}).view(parameters.master(place).sizes()));
  }
  Optimizer optimizer({.name = OptimizerKind::sgd, .weight_decay = 0.2}, parameters);
  optimizer.step(0.1, 0.5);
  EXPECT_LT(relative_error(parameters.master(0), at::tensor({1 - 0.025 - 0.02, -2 - 0.2 + 0.04}).view({1, 2})), 1e-6);
  EXPECT_LT(relative_error(parameters.master(1), at::tensor({1 - 0.025, -2 - 0.2})), 1e-6);
}

TEST(Optimizer, SgdHasNoMomentsAndPublishes) {
  Parameters parameters(specs(), {.dtype = at::kBFloat16, .trainable = true});
  parameters.initialise(1, 0.5);
  parameters.flat_gradient().copy_(normals(parameters.flat_gradient().sizes(), 5));
  const Tensor before = parameters.flat().clone();
  Optimizer optimizer({.name = OptimizerKind::sgd}, parameters), next({.name = OptimizerKind::sgd}, parameters);
  optimizer.step(0.1);
  EXPECT_FALSE(optimizer.first_moment().defined());
  EXPECT_FALSE(same_bits(parameters.flat(), before));
  EXPECT_TRUE(same_bits(parameters.flat(), parameters.flat_master().to(at::kBFloat16)));
  const testing::TempFolder temp;
  StateSnapshot snapshot;
  optimizer.save(snapshot);
  snapshot.write(temp.path());
  const StateFiles files(temp.path());
  next.load(files);
  EXPECT_EQ(next.num_steps(), 1);
  Optimizer adam({}, parameters);
  EXPECT_EQ(error_of([&] {
              adam.load(files);
              return 0;
            }),
            (temp / "state.safetensors").string() + ": no optimizer.first_moment");
}

TEST(Optimizer, KindsGoByTheReferencesNames) {
  const auto kind_of = [](const std::vector<std::string>& given) {
    OptimizerConfig config;
    EXPECT_TRUE(load_section(describe(config), {"test", ""}, given).empty());
    return config.name;
  };
  EXPECT_EQ(kind_of({}), OptimizerKind::distributed_fused_adam);
  EXPECT_EQ(kind_of({"name=mcore_distributed_optim"}), OptimizerKind::distributed_fused_adam);
  EXPECT_EQ(kind_of({"name=adamw"}), OptimizerKind::adamw);
  EXPECT_EQ(kind_of({"name=sgd"}), OptimizerKind::sgd);
  for (const std::string key :
       {"bucket_cap_mb", "overlap_grad_sync", "overlap_param_sync", "contiguous_grad_buffer", "contiguous_param_buffer"}) {
    OptimizerConfig config;
    const auto warnings = load_section(describe(config), {"test", ""}, {"++" + key + "=1"});
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_TRUE(warnings[0].ends_with(key + " is ignored: gradients and parameters are not bucketed")) << warnings[0];
  }
}

TEST(Optimizer, InfiniteSettingsAreRefused) {
  for (const std::string key : {"lr", "eps", "weight_decay"}) {
    OptimizerConfig config;
    const std::string error = error_of([&] { return load_section(describe(config), {"test", ""}, {key + "=inf"}); });
    EXPECT_TRUE(error.ends_with(key + (key == "eps" ? ": expected above 0" : ": expected at least 0") + " and finite, found inf")) << error;
  }
}

TEST(Optimizer, MomentsAreStoredAsAsked) {
  Parameters parameters(specs(), {.trainable = true});
  EXPECT_EQ((Optimizer({.moments = MomentType::bf16}, parameters).first_moment().scalar_type()), at::kBFloat16);
  EXPECT_EQ((Optimizer({.offload_adam_states = true}, parameters).first_moment().device()), at::Device(at::kCPU));
}

TEST(Optimizer, SettingsThatMakeNoSenseAreNamed) {
  Parameters parameters(specs(), {.trainable = true}), frozen(specs(), {});
  EXPECT_EQ(error_of([&] { return Optimizer({.betas = {0.9}}, parameters); }), "optim.betas: expected two numbers, found 1");
  EXPECT_EQ(error_of([&] { return Optimizer({.betas = {0.9, 1}}, parameters); }), "optim.betas: 1 is not in [0, 1)");
  EXPECT_THROW(Optimizer({}, frozen), Bug);
}

}  // namespace
}  // namespace kedge
