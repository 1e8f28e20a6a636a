#include "kedge/model/score_head.h"

#include <gtest/gtest.h>

#include <ATen/ops/mm.h>
#include <ATen/ops/stack.h>

#include "kedge/core/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::batch_of;
using testing::error_of;
using testing::leaf;
using testing::normals;
using testing::relative_error;
using testing::same_bits;
using testing::tiny_model;

const std::vector<int64_t> kScoredLengths = {5, 1, 9};

std::unique_ptr<Model> score_model(int64_t labels, bool bias = true) {
  return tiny_model(testing::kTinyLlama, {.trainable = true}, {HeadKind::score, labels, bias});
}

Tensor pooled(const Tensor& hidden, Pooling pooling) {
  std::vector<Tensor> rows;
  int64_t start = 0;
  for (const int64_t length : kScoredLengths) {
    const Tensor row = hidden.narrow(0, start, length);
    rows.push_back(pooling == Pooling::last ? row[length - 1] : pooling == Pooling::mean ? row.mean(0) : row.amax(0));
    start += length;
  }
  return at::stack(rows);
}

TEST(ScoreHead, EveryPoolingEqualsADoublePrecisionReference) {
  for (const int64_t labels : {1, 9})
    for (const Pooling pooling : {Pooling::last, Pooling::mean, Pooling::max}) {
      const auto model = score_model(labels);
      const PackedBatch batch = batch_of(kScoredLengths);
      const Tensor hidden = model->hidden(batch).detach().to(at::kDouble);
      const Tensor weight = model->parameters().value(model->places().score).to(at::kDouble);
      const Tensor bias = model->parameters().value(model->places().score_bias).to(at::kDouble);
      const Tensor found = row_scores(*model, batch, pooling);
      EXPECT_EQ(found.scalar_type(), at::kFloat);
      EXPECT_LT(relative_error(found, at::mm(pooled(hidden, pooling), weight.t()) + bias), 1e-5);
    }
}

TEST(ScoreHead, ACriticScoresEveryToken) {
  const auto model = score_model(2);
  const PackedBatch batch = batch_of(kScoredLengths);
  const Tensor all = token_scores(*model, batch);
  EXPECT_EQ(all.sizes(), at::IntArrayRef({15, 2}));
  const Tensor ends = all.index_select(0, testing::longs({4, 5, 14}));
  EXPECT_LT(relative_error(ends, row_scores(*model, batch, Pooling::last)), 1e-6);
}

TEST(ScoreHead, GradientsOfHeadAndStatesEqualAutograd) {
  const auto model = score_model(3);
  const Tensor states = normals({7, 24}, 1), dscores = normals({7, 3}, 2);
  Tensor ours = states.clone().requires_grad_(true);
  backward((score_states(*model, ours) * dscores).sum());
  const Tensor plain = leaf(states), weight = leaf(model->parameters().value(model->places().score)),
               bias = leaf(model->parameters().value(model->places().score_bias));
  backward(((at::mm(plain, weight.t()) + bias) * dscores.to(at::kDouble)).sum());
  EXPECT_LT(relative_error(ours.grad(), plain.grad()), 1e-5);
  EXPECT_LT(relative_error(model->parameters().gradient(model->places().score), weight.grad()), 1e-5);
  EXPECT_LT(relative_error(model->parameters().gradient(model->places().score_bias), bias.grad()), 1e-5);
}

TEST(ScoreHead, EveryPoolingSendsGradientsThroughTheWholeModel) {
  for (const Pooling pooling : {Pooling::last, Pooling::mean, Pooling::max}) {
    const auto model = score_model(1, false);
    backward(row_scores(*model, batch_of(kScoredLengths), pooling).sum());
    for (size_t i = 0; i < model->parameters().specs().size(); ++i)
      EXPECT_GT(model->parameters().gradient(static_cast<int>(i)).abs().max().item<double>(), 1e-7) << model->parameters().specs()[i].name;
  }
}

// Weights of bf16, states of bf16, the product in fp32: the score differs from that of the rounded numbers by fp32 rounding alone.
TEST(ScoreHead, TheProductIsTakenInFp32) {
  const auto model = tiny_model(testing::kTinyLlama, {.dtype = at::kBFloat16, .trainable = true}, {HeadKind::score, 2, true});
  const Tensor states = normals({6, 24}, 1, 1, at::kBFloat16);
  const Tensor weight = model->parameters().value(model->places().score).to(at::kDouble),
               bias = model->parameters().value(model->places().score_bias).to(at::kDouble);
  Tensor given = states.clone().requires_grad_(true);
  const Tensor found = score_states(*model, given);
  EXPECT_EQ(found.scalar_type(), at::kFloat);
  EXPECT_LT(relative_error(found, at::mm(states.to(at::kDouble), weight.t()) + bias), 1e-5);
  backward(found.sum());
  EXPECT_EQ(given.grad().scalar_type(), at::kBFloat16);
}

TEST(ScoreHead, LabelsAreMergedByTheirWeightsOrTheirMean) {
  const Tensor scores = at::tensor({1.0, 2.0, 6.0, 0.0, 3.0, 0.0}).to(at::kFloat).view({2, 3});
  EXPECT_TRUE(same_bits(merge_labels(scores, {}, "w"), at::tensor({3.0, 1.0}).to(at::kFloat)));
  EXPECT_TRUE(same_bits(merge_labels(scores, {1, 0, -0.5}, "w"), at::tensor({-2.0, 0.0}).to(at::kFloat)));
  EXPECT_EQ(error_of([&] {
              return merge_labels(scores, {1, 2}, "model.regression.attribute_weights");
            }),
            "model.regression.attribute_weights: 2 weights for 3 labels");
}

TEST(ScoreHead, StandardizationShiftsAndScales) {
  const Tensor x = at::tensor({5.3735, 6.6458}).to(at::kFloat);
  EXPECT_TRUE(same_bits((Standardization{}).apply(x), x));
  const Tensor standard = (Standardization{true, 5.3735, 1.2723}).apply(x);
  EXPECT_NEAR(standard[0].item<double>(), 0, 1e-6);
  EXPECT_NEAR(standard[1].item<double>(), 1, 1e-6);
}

std::unique_ptr<Model> adapted_score_model() {
  auto model = tiny_model(testing::kTinyLlama, {}, {HeadKind::score, 1, true});
  LoraConfig lora;
  lora.adapter_dim = 4;
  model->add_adapters(lora, true);
  testing::scatter_weights(model->adapters()->parameters(), 50, 0.2);
  return model;
}

TEST(ScoreHead, AdaptersScoreWithTheirOwnHeadWhileTheyAreOn) {
  const auto model = adapted_score_model();
  const Tensor states = normals({7, 24}, 1);
  const auto scores_of = [&](const Parameters& parameters, int weight, int bias) {
    return at::mm(states, parameters.value(weight).t()) + parameters.value(bias);
  };
  const Adapters& adapters = *model->adapters();
  const Tensor own = scores_of(adapters.parameters(), adapters.score(), adapters.score_bias());
  const Tensor base = scores_of(model->parameters(), model->places().score, model->places().score_bias);
  EXPECT_GT(testing::largest_difference(own, base), 0.1);
  EXPECT_LT(relative_error(score_states(*model, states), own), 1e-5);
  const AdaptersOff off(model->adapters());
  EXPECT_LT(relative_error(score_states(*model, states), base), 1e-5);
}

TEST(ScoreHead, GradientsOfTheAdaptersHeadEqualAutograd) {
  const auto model = adapted_score_model();
  const Adapters& adapters = *model->adapters();
  const Tensor states = normals({7, 24}, 1), dscores = normals({7, 1}, 2);
  backward((score_states(*model, states.clone().requires_grad_(true)) * dscores).sum());
  const Tensor weight = leaf(adapters.parameters().value(adapters.score())),
               bias = leaf(adapters.parameters().value(adapters.score_bias()));
  backward(((at::mm(states.to(at::kDouble), weight.t()) + bias) * dscores.to(at::kDouble)).sum());
  EXPECT_LT(relative_error(adapters.parameters().gradient(adapters.score()), weight.grad()), 1e-5);
  EXPECT_LT(relative_error(adapters.parameters().gradient(adapters.score_bias()), bias.grad()), 1e-5);
}

TEST(ScoreHead, AdaptersAndTheirHeadGetGradientsOnAFrozenBase) {
  const auto model = adapted_score_model();
  backward(row_scores(*model, batch_of(kScoredLengths), Pooling::mean).sum());
  const Parameters& parameters = model->adapters()->parameters();
  for (size_t i = 0; i < parameters.specs().size(); ++i)
    EXPECT_GT(parameters.gradient(static_cast<int>(i)).abs().max().item<double>(), 1e-6) << parameters.specs()[i].name;
}

TEST(ScoreHead, PoolingIsNotedInTheConfiguration) {
  const auto model = tiny_model(testing::kTinyLlama, {}, {HeadKind::score, 1, false});
  EXPECT_EQ(noted_pooling(model->config()), Pooling::last);
  for (const Pooling pooling : {Pooling::mean, Pooling::max, Pooling::last}) {
    note_pooling(*model, pooling);
    EXPECT_EQ(noted_pooling(parse_model_config(config_json(model->config(), "float32", 1), "config.json")), pooling);
  }
  model->note("kedge_pooling", Json("first"));
  EXPECT_EQ(testing::error_of([&] { return noted_pooling(model->config()); }),
            "config.json: kedge_pooling: expected last, mean or max, found \"first\"");
}

TEST(ScoreHead, ALanguageModelHasNone) {
  const auto model = tiny_model(testing::kTinyLlama, {});
  EXPECT_THROW(static_cast<void>(row_scores(*model, batch_of({3}), Pooling::last)), Bug);
}

}  // namespace
}  // namespace kedge
