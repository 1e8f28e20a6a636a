#include "kedge/model/logprob_head.h"

#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>

#include "kedge/core/autograd.h"

#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::ids_below;
using testing::leaf;
using testing::normals;
using testing::relative_error;
using testing::same_bits;

// Tokens 1, 3, 0 under three rows of logits over four ids; with the identity as the head the hidden states are the logits.
TEST(LogprobHead, HandWorkedLogprobsEntropiesAndGradients) {
  const Tensor hidden =
      at::tensor({1.0, 2.0, 0.5, -1.0, 0.0, 0.3, -0.2, 1.5, 2.0, 0.0, 0.0, 0.0}).to(at::kFloat).view({3, 4}).requires_grad_(true);
  const std::vector<std::vector<int32_t>> rows = {{1, 3, 0}};
  const PredictedTokens predicted = predicted_tokens(pack_rows(rows, at::kCPU));
  const TokenLogprobs found = token_logprobs(hidden, {at::eye(4), {}}, predicted, {.entropy = true});
  const auto expect_near = [](const Tensor& numbers, std::vector<double> wanted) {
    const Tensor flat = numbers.detach().reshape({-1});
    ASSERT_EQ(flat.numel(), static_cast<int64_t>(wanted.size()));
    for (int64_t i = 0; i < flat.numel(); ++i) EXPECT_NEAR(flat[i].item<double>(), wanted[static_cast<size_t>(i)], 1e-6) << i;
  };
  expect_near(found.logprobs, {-3.495181898, -2.034742070});
  expect_near(found.entropy, {1.014402776, 1.124481747});
  backward(found.logprobs.sum());
  expect_near(hidden.grad(),
              {-0.224207818, -0.609460038, -0.135988916, 0.969656771, 0.869285807, -0.176445705, -0.107019730, -0.585820372, 0, 0, 0, 0});
}

constexpr int64_t kHeadTokens = 50, kHeadHidden = 12, kVocab = 37;

struct Case {
  Tensor hidden = normals({kHeadTokens, kHeadHidden}, 1), weight = normals({kVocab, kHeadHidden}, 2);
  PredictedTokens predicted = {testing::longs({0, 1, 2, 5, 7, 9, 10, 11, 12, 13, 14, 20, 21, 22, 40, 48, 49}), ids_below(kVocab, 17, 3)};
  Tensor dlogprobs = normals({17}, 4), dentropy = normals({17}, 5);
};

struct Found {
  Tensor logprobs, entropy, dhidden, dweight;
};

Found ours(const Case& given, const LogprobOptions& options, bool train_head = true) {
  const Tensor hidden = given.hidden.clone().requires_grad_(true), gradient = train_head ? at::zeros({kVocab, kHeadHidden}) : Tensor();
  const TokenLogprobs found = token_logprobs(hidden, {given.weight, gradient}, given.predicted, options);
  Tensor loss = (found.logprobs * given.dlogprobs).sum();
  if (options.entropy) loss = loss + (found.entropy * given.dentropy).sum();
  backward(loss);
  return {found.logprobs.detach(), found.entropy, hidden.grad(), gradient};
}

Found plain(const Case& given, bool entropy, double temperature = 1) {
  const Tensor hidden = leaf(given.hidden), weight = leaf(given.weight);
  const Tensor logp = at::log_softmax(at::mm(hidden.index_select(0, given.predicted.places), weight.t()) / temperature, -1);
  const Tensor logprobs = logp.gather(1, given.predicted.targets.unsqueeze(1)).squeeze(1), entropies = -(logp.exp() * logp).sum(-1);
  Tensor loss = (logprobs * given.dlogprobs.to(at::kDouble)).sum();
  if (entropy) loss = loss + (entropies * given.dentropy.to(at::kDouble)).sum();
  backward(loss);
  return {logprobs.detach(), entropies.detach(), hidden.grad(), weight.grad()};
}

TEST(LogprobHead, EveryChunkSizeGivesThePlainValuesAndGradients) {
  const Case given;
  for (const bool entropy : {false, true})
    for (const int64_t chunk : {0, 1, 7, 17, 64}) {
      const Found found = ours(given, {entropy, chunk}), wanted = plain(given, entropy);
      EXPECT_LT(relative_error(found.logprobs, wanted.logprobs), 1e-5);
      EXPECT_EQ(found.entropy.defined(), entropy);
      if (entropy) {
        EXPECT_LT(relative_error(found.entropy, wanted.entropy), 1e-5);
      }
      EXPECT_LT(relative_error(found.dhidden, wanted.dhidden), 1e-5);
      EXPECT_LT(relative_error(found.dweight, wanted.dweight), 1e-5);
    }
}

TEST(LogprobHead, ATemperatureDividesTheLogits) {
  const Case given;
  for (const double temperature : {0.6, 1.5})
    for (const bool entropy : {false, true})
      for (const int64_t chunk : {0, 7}) {
        const Found found = ours(given, {entropy, chunk, temperature}), wanted = plain(given, entropy, temperature);
        EXPECT_LT(relative_error(found.logprobs, wanted.logprobs), 1e-5);
        if (entropy) {
          EXPECT_LT(relative_error(found.entropy, wanted.entropy), 1e-5);
        }
        EXPECT_LT(relative_error(found.dhidden, wanted.dhidden), 1e-5);
        EXPECT_LT(relative_error(found.dweight, wanted.dweight), 1e-5);
      }
}

TEST(LogprobHead, AFrozenHeadGivesTheSameGradientOfTheStates) {
  const Case given;
  const Found trained = ours(given, {true, 7}), frozen = ours(given, {true, 7}, false);
  EXPECT_TRUE(same_bits(trained.dhidden, frozen.dhidden));
}

TEST(LogprobHead, TheWeightsGradientIsAddedToWhatIsThere) {
  const Case given;
  const Tensor hidden = given.hidden.clone().requires_grad_(true), gradient = at::ones({kVocab, kHeadHidden});
  backward((token_logprobs(hidden, {given.weight, gradient}, given.predicted).logprobs * given.dlogprobs).sum());
  EXPECT_LT(relative_error(gradient - 1, plain(given, false).dweight), 1e-5);
}

TEST(LogprobHead, ALossOfTheEntropyAloneGoesBackward) {
  const Case given;
  const Tensor hidden = given.hidden.clone().requires_grad_(true);
  backward((token_logprobs(hidden, {given.weight, {}}, given.predicted, {.entropy = true}).entropy * given.dentropy).sum());
  const Tensor hidden_leaf = leaf(given.hidden);
  const Tensor logp = at::log_softmax(at::mm(hidden_leaf.index_select(0, given.predicted.places), given.weight.to(at::kDouble).t()), -1);
  backward((-(logp.exp() * logp).sum(-1) * given.dentropy.to(at::kDouble)).sum());
  EXPECT_LT(relative_error(hidden.grad(), hidden_leaf.grad()), 1e-5);
}

TEST(LogprobHead, GoingBackwardTwiceGivesTwiceTheGradients) {
  const Case given;
  const Tensor hidden = given.hidden.clone().requires_grad_(true), gradient = at::zeros({kVocab, kHeadHidden});
  const Tensor loss = (token_logprobs(hidden, {given.weight, gradient}, given.predicted, {.chunk = 7}).logprobs * given.dlogprobs).sum();
  torch::autograd::backward({loss}, {}, true);
  backward(loss);
  const Found wanted = plain(given, false);
  EXPECT_LT(relative_error(hidden.grad(), 2 * wanted.dhidden), 1e-5);
  EXPECT_LT(relative_error(gradient, 2 * wanted.dweight), 1e-5);
}

// 164 MB of logits: some wait for the backward, some are computed again, unless more may be kept. Taken by halves, all of them wait.
TEST(LogprobHead, MoreLogitsThanMayWaitGiveTheSameGradients) {
  constexpr int64_t kMany = 4096, kWide = 10'000;
  const Tensor states = normals({kMany, 4}, 1), weight = normals({kWide, 4}, 2), targets = ids_below(kWide, kMany, 3),
               d = normals({kMany}, 4);
  const auto run = [&](int64_t pieces, int64_t kept = 0) {
    const Tensor hidden = states.clone().requires_grad_(true), gradient = at::zeros({kWide, 4});
    const int64_t count = kMany / pieces;
    for (int64_t begin = 0; begin < kMany; begin += count) {
      const PredictedTokens some{at::arange(begin, begin + count), targets.narrow(0, begin, count)};
      const HeadView head{.weight = weight, .weight_gradient = gradient, .kept_logits = kept};
      backward((token_logprobs(hidden, head, some).logprobs * d.narrow(0, begin, count)).sum());
    }
    return std::pair(hidden.grad(), gradient);
  };
  const auto [hidden, gradient] = run(1);
  const auto [hidden_by_halves, gradient_by_halves] = run(2);
  EXPECT_LT(relative_error(hidden, hidden_by_halves), 1e-6);
  EXPECT_LT(relative_error(gradient, gradient_by_halves), 1e-5);
  const auto [hidden_kept, gradient_kept] = run(1, int64_t{1} << 30U);
  EXPECT_TRUE(same_bits(hidden, hidden_kept));
  EXPECT_TRUE(same_bits(gradient, gradient_kept));
}

TEST(LogprobHead, NothingToPredictIsNothing) {
  const Tensor hidden = normals({1, kHeadHidden}, 1).requires_grad_(true), none = at::empty({0}, at::kLong);
  const TokenLogprobs found = token_logprobs(hidden, {normals({kVocab, kHeadHidden}, 2), {}}, {none, none}, {.entropy = true});
  EXPECT_EQ(found.logprobs.numel(), 0);
  EXPECT_EQ(found.entropy.numel(), 0);
  backward(found.logprobs.sum());
  EXPECT_EQ(hidden.grad().abs().max().item<float>(), 0);
}

TEST(LogprobHead, NothingIsRecordedUnderNoGrad) {
  const Case given;
  const NoGrad no_grad;
  EXPECT_FALSE(token_logprobs(given.hidden.clone().requires_grad_(true), {given.weight, {}}, given.predicted).logprobs.requires_grad());
}

// On the CPU logits of bf16 states are rounded to bf16: 2^-9 of numbers up to about 12.
TEST(LogprobHead, Bf16StatesGiveFp32LogprobsThatAreClose) {
  Case given;
  given.hidden = given.hidden.to(at::kBFloat16), given.weight = given.weight.to(at::kBFloat16);
  const Found found = ours(given, {true, 7}), wanted = plain(given, true);
  EXPECT_EQ(found.logprobs.scalar_type(), at::kFloat);
  EXPECT_LT(testing::largest_difference(found.logprobs, wanted.logprobs), 0.05);
  EXPECT_LT(relative_error(found.dhidden, wanted.dhidden), 0.03);
  EXPECT_LT(relative_error(found.dweight, wanted.dweight), 0.03);
}

// 8 MB of fp32 logits on a CPU, 512 MB on CUDA, in steps of 64 places.
TEST(LogprobHead, TheLogitsHeldAtATimeAreBounded) {
  EXPECT_EQ(logit_memory(false, 8192).chunk, 256);
  EXPECT_EQ(logit_memory(false, 151'936).chunk, 64);
  EXPECT_EQ(logit_memory(false, 31).chunk, 4096);
  EXPECT_EQ(logit_memory(true, 128'256).chunk, 2048);
  EXPECT_EQ(logit_memory(true, 151'936).chunk, 1536);
  EXPECT_EQ(logit_memory(false, 8192).waiting_bytes, int64_t{128} << 20U);
  EXPECT_EQ(logit_memory(true, 8192).waiting_bytes, int64_t{1536} << 20U);
}

}  // namespace
}  // namespace kedge
