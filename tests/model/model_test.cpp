#include "kedge/model/model.h"

#include <gtest/gtest.h>

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>

#include "kedge/core/error.h"

#include "tests/support/model_logits.h"
#include "tests/support/shared_rows.h"
#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::batch_of;
using testing::largest_difference;
using testing::model_logits;
using testing::normals;
using testing::relative_error;
using testing::same_bits;
using testing::tiny_model;
using testing::token_loss;

const std::vector<int64_t> kLengths = {13, 1, 20, 6};

TEST(Model, LogprobsAreThoseOfTheLogits) {
  for (const char* family : {testing::kTinyLlama, testing::kTinyQwen3, testing::kTinyGpt2}) {
    const auto model = tiny_model(family, {});
    const PackedBatch batch = batch_of(kLengths);
    const PredictedTokens predicted = predicted_tokens(batch);
    const Tensor logits = model_logits(*model, batch);
    EXPECT_EQ(logits.sizes(), at::IntArrayRef({40, 31}));
    const Tensor logp = at::log_softmax(logits.to(at::kDouble), -1).index_select(0, predicted.places);
    const TokenLogprobs found = model_logprobs(*model, batch, predicted, {.entropy = true});
    EXPECT_LT(relative_error(found.logprobs, logp.gather(1, predicted.targets.unsqueeze(1)).squeeze(1)), 1e-5);
    EXPECT_LT(relative_error(found.entropy, -(logp.exp() * logp).sum(1)), 1e-5);
  }
}

TEST(Model, ATokensLogprobDoesNotDependOnTheBatch) {
  double worst = 0;
  for (const char* family : {testing::kTinyLlama, testing::kTinyQwen3, testing::kTinyGpt2})
    worst = std::max(worst, testing::difference_to_rows_alone(*tiny_model(family, {}), testing::rows_of(kLengths)));
  EXPECT_EQ(worst, 0);
}

// Every family, Mistral's with a window inside the prompt; with and without recomputation. Log-probabilities bit for bit, gradients but for
// the order of sums.
TEST(Model, ASharedPromptChangesNoLogprob) {
  const testing::SharedRows rows = testing::shared_rows({{9, {4, 2, 7}}, {20, {3, 30}}, {5, {6}}, {1, {2, 2, 2, 2}}});
  for (const char* family : {testing::kTinyLlama, testing::kTinyMistral, testing::kTinyQwen3, testing::kTinyGpt2})
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
      for (const bool checkpoint : {false, true}) {
        const auto look = [&](const PackedBatch& batch, const PredictedTokens& predicted) {
          const auto model = tiny_model(family, {.dtype = dtype, .trainable = true});
          const Tensor logprobs = model_logprobs(*model, batch, predicted, {}, {.checkpoint = checkpoint, .dropout_seed = {}}).logprobs;
          backward((logprobs * normals(logprobs.sizes(), 7)).sum());
          return std::pair(logprobs.detach(), model->parameters().flat_gradient().clone());
        };
        const auto [apart, wanted] = look(rows.apart, rows.apart_predicted);
        const auto [shared, found] = look(rows.shared, rows.shared_predicted);
        EXPECT_TRUE(same_bits(shared, apart)) << family;
        EXPECT_LT((found - wanted).norm().item<double>() / wanted.norm().item<double>(), dtype == at::kFloat ? 1e-5 : 0.02) << family;
        EXPECT_TRUE(same_bits(look(rows.shared, rows.shared_predicted).second, found)) << family;
      }
}

TEST(Model, EveryParameterOfALanguageModelGetsAGradient) {
  for (const char* family : {testing::kTinyLlama, testing::kTinyQwen3, testing::kTinyGpt2}) {
    const auto model = tiny_model(family);
    backward(token_loss(*model, batch_of(kLengths)));
    for (size_t i = 0; i < model->parameters().specs().size(); ++i)
      EXPECT_GT(model->parameters().gradient(static_cast<int>(i)).abs().max().item<double>(), 1e-6) << model->parameters().specs()[i].name;
  }
}

// The head's part and the embedding's part of a tied matrix add up: a difference quotient sees both.
TEST(Model, ATiedMatrixGetsBothGradients) {
  const auto model = tiny_model(testing::kTinyQwen3);
  ASSERT_EQ(model->places().head, model->places().embedding);
  const PackedBatch batch = batch_of(kLengths);
  backward(token_loss(*model, batch));
  const Tensor gradient = model->parameters().gradient(model->places().embedding),
               matrix = model->parameters().master(model->places().embedding);
  const double norm = gradient.norm().item<double>();
  const NoGrad no_grad;
  const auto loss_at = [&](double step) {
    const Tensor start = matrix.clone();
    matrix.add_(gradient, step / norm);
    const double loss = token_loss(*model, batch).item<double>();
    matrix.copy_(start);
    return loss;
  };
  EXPECT_NEAR((loss_at(2e-3) - loss_at(-2e-3)) / 4e-3 / norm, 1, 2e-3);
}

TEST(Model, CheckpointingGivesTheSameBitsWithTheHead) {
  const auto gradient = [](bool checkpoint) {
    const auto model = tiny_model(testing::kTinyGpt2);
    backward(token_loss(*model, batch_of(kLengths), {.checkpoint = checkpoint, .dropout_seed = {}}));
    return model->parameters().flat_gradient().clone();
  };
  EXPECT_TRUE(same_bits(gradient(false), gradient(true)));
}

TEST(Model, MergedAdaptersGiveTheAdaptedLogits) {
  for (const char* family : {testing::kTinyLlama, testing::kTinyQwen3, testing::kTinyGpt2}) {
    const auto model = tiny_model(family, {});
    LoraConfig lora;
    lora.adapter_dim = 4;
    lora.alpha = 8;
    lora.target_modules = {"all"};
    model->add_adapters(lora, false);
    testing::scatter_weights(model->adapters()->parameters(), 50, 0.2);
    const PackedBatch batch = batch_of(kLengths);
    const Tensor adapted = model_logits(*model, batch);
    Tensor base;
    {
      const AdaptersOff off(model->adapters());
      base = model_logits(*model, batch);
    }
    EXPECT_GT(largest_difference(adapted, base), 0.1);
    model->merge_adapters();
    EXPECT_EQ(model->adapters(), nullptr);
    EXPECT_LT(relative_error(model_logits(*model, batch), adapted), 1e-5);
    EXPECT_GT(largest_difference(model_logits(*model, batch), base), 0.1);
  }
}

TEST(Model, MergingPutsTheAdaptersScoreHeadInTheBasesPlace) {
  for (const bool bias : {false, true}) {
    const auto model = tiny_model(testing::kTinyLlama, {}, {HeadKind::score, 2, bias});
    model->add_adapters(LoraConfig{}, false);
    testing::scatter_weights(model->adapters()->parameters(), 50, 0.2);
    const Tensor weight = model->score_head().weight.clone();
    const Tensor own_bias = bias ? model->score_head().bias.clone() : Tensor();
    EXPECT_FALSE(same_bits(model->parameters().value(model->places().score), weight));
    model->merge_adapters();
    EXPECT_TRUE(same_bits(model->parameters().value(model->places().score), weight));
    if (bias) {
      EXPECT_TRUE(same_bits(model->score_head().bias, own_bias));
    }
  }
}

TEST(Model, WhatIsTrainedIsTheAdaptersWhereThereAreAny) {
  const auto whole = tiny_model(testing::kTinyLlama);
  EXPECT_EQ(&whole->trained(), &whole->parameters());
  const auto adapted = tiny_model(testing::kTinyLlama, {});
  adapted->add_adapters(LoraConfig{}, true);
  EXPECT_EQ(&adapted->trained(), &adapted->adapters()->parameters());
}

TEST(Model, AdaptersOnATrainedNetworkOrTwiceAreBugs) {
  const auto trained = tiny_model(testing::kTinyLlama), frozen = tiny_model(testing::kTinyLlama, {});
  EXPECT_THROW(trained->add_adapters(LoraConfig{}, true), Bug);
  frozen->add_adapters(LoraConfig{}, true);
  EXPECT_THROW(frozen->add_adapters(LoraConfig{}, true), Bug);
  EXPECT_THROW(trained->merge_adapters(), Bug);
}

TEST(Model, HeadsAreWhatTheyAreMadeAs) {
  const auto language = tiny_model(testing::kTinyLlama, {});
  const auto score = tiny_model(testing::kTinyLlama, {}, {HeadKind::score, 2, true});
  EXPECT_THROW(static_cast<void>(score->language_head()), Bug);
  EXPECT_THROW(language->initialise_head(1), Bug);
  EXPECT_THROW(static_cast<void>(language->score_head()), Bug);
  EXPECT_EQ(language->language_head().weight.sizes(), at::IntArrayRef({31, 24}));
  score->initialise_head(1);
  const Tensor first = score->parameters().value(score->places().score).clone();
  score->initialise_head(2);
  EXPECT_FALSE(same_bits(first, score->parameters().value(score->places().score)));
  score->initialise_head(1);
  EXPECT_TRUE(same_bits(first, score->parameters().value(score->places().score)));
  EXPECT_EQ(score->parameters().value(score->places().score_bias).abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace kedge
