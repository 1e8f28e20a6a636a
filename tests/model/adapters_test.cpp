#include "kedge/model/adapters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "kedge/core/error.h"

#include "tests/support/model_logits.h"
#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::batch_of;
using testing::largest_difference;
using testing::model_logits;
using testing::relative_error;
using testing::same_bits;
using testing::scatter_weights;
using testing::tiny_model;
using testing::token_loss;

constexpr std::array kFamilies = {testing::kTinyLlama, testing::kTinyQwen3, testing::kTinyGpt2};
const std::vector<int64_t> kLengths = {13, 1, 20, 6};

LoraConfig lora_of(double dropout = 0) {
  LoraConfig lora;
  lora.adapter_dim = 4;
  lora.alpha = 8;
  lora.adapter_dropout = dropout;
  lora.target_modules = {"all"};
  return lora;
}

std::unique_ptr<Model> adapted_model(const char* family, bool scattered, double dropout = 0, at::ScalarType dtype = at::kFloat) {
  auto model = tiny_model(family, {.dtype = dtype});
  model->add_adapters(lora_of(dropout), true);
  model->adapters()->initialise(3);
  if (scattered) scatter_weights(model->adapters()->parameters(), 50, 0.2);
  return model;
}

TEST(Adapters, StepZeroIsTheBaseBitForBit) {
  for (const char* family : kFamilies) {
    const PackedBatch batch = batch_of(kLengths);
    EXPECT_TRUE(same_bits(model_logits(*adapted_model(family, false), batch), model_logits(*tiny_model(family, {}), batch)));
  }
}

TEST(Adapters, SwitchedOffTheyLeaveTheBaseBitForBit) {
  for (const char* family : kFamilies) {
    const auto model = adapted_model(family, true);
    const PackedBatch batch = batch_of(kLengths);
    const Tensor base = model_logits(*tiny_model(family, {}), batch), adapted = model_logits(*model, batch);
    EXPECT_GT(largest_difference(adapted, base), 0.1);
    {
      const AdaptersOff off(model->adapters());
      EXPECT_TRUE(same_bits(model_logits(*model, batch), base));
      EXPECT_FALSE(model->hidden(batch).requires_grad());
      const AdaptersOff again(model->adapters());
    }
    EXPECT_TRUE(same_bits(model_logits(*model, batch), adapted));
  }
}

TEST(Adapters, TheScopeRestoresWhenAnErrorPassesAndNests) {
  const auto model = adapted_model(testing::kTinyLlama, true);
  try {
    const AdaptersOff off(model->adapters());
    { const AdaptersOff inner(model->adapters()); }
    EXPECT_FALSE(model->adapters()->enabled());
    throw std::runtime_error("an error in a reference pass");
  } catch (const std::runtime_error&) {
    EXPECT_TRUE(model->adapters()->enabled());
  }
  const AdaptersOff nothing(nullptr);
}

// It would lose their gradients in silence.
TEST(Adapters, SwitchingBetweenAPassAndItsBackwardIsABug) {
  const auto model = adapted_model(testing::kTinyLlama, true);
  const Tensor loss = token_loss(*model, batch_of(kLengths));
  const AdaptersOff off(model->adapters());
  EXPECT_THROW(backward(loss), Bug);
}

TEST(Adapters, AIsXavierNormalAndBZero) {
  // 128 x 128: deviation sqrt(2 / 256) = 0.0884, itself uncertain by 0.0884 / sqrt(2 * 16384); five of those are allowed.
  LoraConfig lora;
  lora.adapter_dim = 128;
  Adapters adapters(lora, {{"m", "q_proj", 0, 7, 0, 16, 128}}, {});
  adapters.initialise(1);
  const Tensor a = adapters.parameters().value(Adapters::a_of(0)).clone();
  EXPECT_NEAR(a.std().item<double>(), std::sqrt(2.0 / 256), 5 * 0.0884 / std::sqrt(2.0 * 16384));
  EXPECT_EQ(adapters.parameters().value(Adapters::b_of(0)).abs().max().item<float>(), 0);
  adapters.initialise(2);
  EXPECT_FALSE(same_bits(adapters.parameters().value(Adapters::a_of(0)), a));
  adapters.initialise(1);
  EXPECT_TRUE(same_bits(adapters.parameters().value(Adapters::a_of(0)), a));
}

TEST(Adapters, StandOnTheirOwnRowsOfTheirParameter) {
  const auto model = adapted_model(testing::kTinyLlama, false);
  const auto& on_qkv = model->adapters()->on(model->places().layers[0].qkv);
  ASSERT_EQ(on_qkv.size(), 3U);
  EXPECT_EQ(on_qkv[1].row, 24);
  EXPECT_EQ(on_qkv[1].rows, 12);
  EXPECT_EQ(on_qkv[1].scale, 2);
  EXPECT_EQ(on_qkv[1].a.sizes(), at::IntArrayRef({4, 24}));
  EXPECT_EQ(on_qkv[1].b.sizes(), at::IntArrayRef({12, 4}));
  EXPECT_TRUE(model->adapters()->on(model->places().embedding).empty());
  EXPECT_EQ(model->adapters()->parameters().specs()[1].name, "model.layers.0.self_attn.q_proj.lora_B.weight");
}

// Against the merged network: its weights' gradient G gives the adapters' by the chain rule, dA = scale B^T G, dB = scale G A^T.
TEST(Adapters, GradientsFollowFromThoseOfTheMergedWeights) {
  for (const char* family : kFamilies) {
    const auto model = adapted_model(family, true);
    const PackedBatch batch = batch_of(kLengths);
    backward(token_loss(*model, batch));
    const auto whole = tiny_model(family);
    const Adapters& adapters = *model->adapters();
    const auto matrix = [&](const Tensor& flat) { return flat.to(at::kFloat); };
    {
      const NoGrad no_grad;
      for (size_t i = 0; i < adapters.slices().size(); ++i) {
        const LinearSlice& slice = adapters.slices()[i];
        whole->parameters()
            .master(slice.parameter)
            .narrow(0, slice.row, slice.rows)
            .add_(matrix(adapters.parameters().value(Adapters::b_of(i))).matmul(adapters.parameters().value(Adapters::a_of(i))), 2);
      }
    }
    backward(token_loss(*whole, batch));
    for (size_t i = 0; i < adapters.slices().size(); ++i) {
      const LinearSlice& slice = adapters.slices()[i];
      const Tensor gradient = whole->parameters().gradient(slice.parameter).narrow(0, slice.row, slice.rows);
      const Tensor &a = adapters.parameters().value(Adapters::a_of(i)), &b = adapters.parameters().value(Adapters::b_of(i));
      EXPECT_LT(relative_error(adapters.parameters().gradient(Adapters::a_of(i)), 2 * b.t().matmul(gradient)), 1e-4) << slice.module;
      EXPECT_LT(relative_error(adapters.parameters().gradient(Adapters::b_of(i)), 2 * gradient.matmul(a.t())), 1e-4) << slice.module;
    }
  }
}

TEST(Adapters, AScoreModelsHeadIsCopiedAndItsWeightDecays) {
  for (const bool bias : {false, true}) {
    const auto model = tiny_model(testing::kTinyLlama, {.dtype = at::kBFloat16}, {HeadKind::score, 2, bias});
    model->add_adapters(lora_of(), true);
    model->adapters()->initialise(3);
    const Adapters& adapters = *model->adapters();
    const Parameters &own = adapters.parameters(), &base = model->parameters();
    const size_t place = 2 * adapters.slices().size();
    ASSERT_EQ(adapters.score(), static_cast<int>(place));
    EXPECT_TRUE(same_bits(own.value(adapters.score()), base.value(model->places().score)));
    EXPECT_EQ(own.master(adapters.score()).scalar_type(), at::kFloat);
    EXPECT_EQ(own.specs()[place].name, "score.weight");
    EXPECT_TRUE(own.specs()[place].decays);
    EXPECT_EQ(own.specs().size(), place + (bias ? 2 : 1));
    if (!bias) {
      EXPECT_EQ(adapters.score_bias(), -1);
      continue;
    }
    EXPECT_TRUE(same_bits(own.value(adapters.score_bias()), base.value(model->places().score_bias)));
    EXPECT_EQ(own.specs()[place + 1].name, "score.bias");
    EXPECT_FALSE(own.specs()[place + 1].decays);
  }
  EXPECT_EQ(adapted_model(testing::kTinyLlama, false)->adapters()->score(), -1);
}

TEST(Adapters, OnAFrozenBaseCheckpointingGivesTheSameGradients) {
  for (const char* family : kFamilies)
    for (const double dropout : {0.0, 0.3}) {
      const auto gradient = [&](bool checkpoint) {
        const auto model = adapted_model(family, true, dropout);
        backward(token_loss(*model, batch_of(kLengths), {.checkpoint = checkpoint, .dropout_seed = 17}));
        return model->adapters()->parameters().flat_gradient().clone();
      };
      const Tensor kept = gradient(false);
      EXPECT_GT(kept.abs().max().item<double>(), 0.01);
      EXPECT_TRUE(same_bits(kept, gradient(true)));
    }
}

TEST(Adapters, EveryAdapterGetsAGradientWhereverItStands) {
  const auto model = adapted_model(testing::kTinyLlama, true);
  backward(token_loss(*model, batch_of(kLengths)));
  const Parameters& parameters = model->adapters()->parameters();
  for (size_t i = 0; i < parameters.specs().size(); ++i)
    EXPECT_GT(parameters.gradient(static_cast<int>(i)).abs().max().item<double>(), 1e-5) << parameters.specs()[i].name;
}

TEST(Adapters, DropoutIsOffWithoutASeedAndRepeatsWithIt) {
  const auto model = adapted_model(testing::kTinyLlama, true, 0.3), plain = adapted_model(testing::kTinyLlama, true);
  const PackedBatch batch = batch_of(kLengths);
  EXPECT_TRUE(same_bits(model->hidden(batch), plain->hidden(batch)));
  EXPECT_TRUE(same_bits(model->hidden(batch, {false, 5}), model->hidden(batch, {false, 5})));
  EXPECT_FALSE(same_bits(model->hidden(batch, {false, 5}), model->hidden(batch, {false, 6})));
}

TEST(Adapters, Bf16AdaptersKeepFp32Masters) {
  const auto model = adapted_model(testing::kTinyLlama, true, 0, at::kBFloat16);
  const Parameters& parameters = model->adapters()->parameters();
  EXPECT_EQ(parameters.value(0).scalar_type(), at::kBFloat16);
  EXPECT_EQ(parameters.master(0).scalar_type(), at::kFloat);
  backward(token_loss(*model, batch_of(kLengths)));
  const auto wide = adapted_model(testing::kTinyLlama, true);
  backward(token_loss(*wide, batch_of(kLengths)));
  const Tensor wanted = wide->adapters()->parameters().flat_gradient();
  EXPECT_LT((parameters.flat_gradient() - wanted).norm().item<double>() / wanted.norm().item<double>(), 0.05);
}

}  // namespace
}  // namespace kedge
