#include "kedge/algo/online/policy_losses.h"

#include <gtest/gtest.h>

#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

#include "kedge/algo/online/minibatches.h"
#include "kedge/core/autograd.h"
#include "kedge/core/error.h"

namespace kedge {
namespace {

// The reference's vectors; worked there in double precision, here in single, hence 1e-6.
constexpr double kClose = 1e-6;

Tensor rows(const std::vector<float>& values) { return at::tensor(values); }

// The mean over the tokens that a mask of 0 and 1 leaves.
Tensor mean_over(const Tensor& values, const Tensor& mask) { return weighted_sum(values, mask / mask.sum().clamp_min(1)); }

// Rows of four tokens of which some are taken out.
Tensor row(const Tensor& tokens, int64_t index) { return tokens.narrow(0, 4 * index, 4); }

const Tensor kLogprobs = rows({-1.2F, -0.7F, -0.5F, -1.1F, -0.8F, -0.6F, -1.4F, -0.2F, -0.4F, -0.9F, -1.0F, -0.3F});
const Tensor kMask = rows({0, 1, 1, 1, 0, 1, 1, 0, 0, 0, 1, 1});
const Tensor kEnded = rows({1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0});  // the last row did not end
const Tensor kAdvantages = rows({1.15F, 1.15F, 1.15F, 1.15F, -0.9F, -0.9F, -0.9F, -0.9F, -0.5F, -0.5F, -0.5F, -0.5F});

TEST(PolicyLosses, ReinforceWeighsLogprobsByAdvantages) {
  const Tensor counts = kMask * kEnded;
  EXPECT_NEAR(mean_over(reinforce_terms(kLogprobs, kAdvantages), counts).item<double>(), 0.169, kClose);
  const std::vector<double> alone = {0.881666667, -0.9, 0};
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_NEAR(mean_over(reinforce_terms(row(kLogprobs, i), row(kAdvantages, i)), row(counts, i)).item<double>(),
                alone[static_cast<size_t>(i)], kClose)
        << i;
}

TEST(PolicyLosses, RejectionSamplingIsCrossEntropyOfTheAnswer) {
  EXPECT_NEAR(mean_over(answer_terms(kLogprobs), kMask).item<double>(), 0.8, kClose);
  const std::vector<double> alone = {0.766666667, 1.0, 0.65};
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_NEAR(mean_over(answer_terms(row(kLogprobs, i)), row(kMask, i)).item<double>(), alone[static_cast<size_t>(i)], kClose) << i;
}

TEST(PolicyLosses, PpoHoldsTheRatioWithinItsBounds) {
  const Tensor advantages = rows({0.9F, -0.5F, 1.2F, -1.1F, 0.4F, -0.8F, 0.6F, 0.3F, -0.7F, 0.2F, 0.5F, -0.9F});
  const Tensor mask = rows({0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0});
  const Tensor counts = mask * kEnded;
  const Tensor previous = rows({-1.0F, -0.9F, -1.3F, -0.4F, -0.6F, -2.0F, -0.7F, -0.2F, -1.5F, -0.3F, -0.8F, -1.2F});
  Tensor now = rows({-0.8F, -0.5F, -1.25F, -0.8F, -0.9F, -1.7F, -0.7F, -0.1F, -1.4F, -0.6F, -0.7F, -1.0F}).requires_grad_(true);
  const ClippedTerms terms = clipped_terms(now, previous, advantages, 0.2);
  const Tensor tokens = rows({-1.08F, 0.745912349F, -1.261525316F, 0.88F, -0.296327288F, 1.079887046F, -0.6F, -0.331551275F, 0.773619643F,
                              -0.148163644F, -0.552585459F, 1.099262482F});
  EXPECT_LT((terms.losses - tokens).abs().max().item<double>(), kClose);
  const Tensor loss = mean_over(terms.losses, counts);
  EXPECT_NEAR(loss.item<double>(), 0.229589358, kClose);
  EXPECT_NEAR(mean_over(terms.ratio, mask).item<double>(), 1.021440287, kClose);
  EXPECT_NEAR(mean_over(terms.clamped, mask).item<double>(), 0.993777431, kClose);
  const std::vector<double> alone = {0.121462344, 0.391779879, 0};
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_NEAR(mean_over(row(terms.losses, i), row(counts, i)).item<double>(), alone[static_cast<size_t>(i)], kClose) << i;
  // The same by the weights that a trainer gives tokens: in micro-batches of one row and of three.
  const std::vector<int64_t> trained = {3, 2, 0}, all = {3, 2, 2};
  const auto weighted = [&](const Tensor& values, const std::vector<int64_t>& lengths, int64_t micro_size) {
    const std::vector<double> weights = token_weights({.rows = {0, 1, 2}}, lengths, micro_size, LossNorm::reference);
    std::vector<float> spread;
    for (const double weight : weights) spread.insert(spread.end(), 4, static_cast<float>(weight));
    return weighted_sum(values, mask * rows(spread)).item<double>();
  };
  EXPECT_NEAR(weighted(terms.losses, trained, 1), 0.171080741, kClose);
  EXPECT_NEAR(weighted(terms.losses, trained, 3), 0.229589358, kClose);
  EXPECT_NEAR(weighted(terms.ratio, all, 1), 1.013157232, kClose);
  EXPECT_NEAR(weighted(terms.clamped, all, 1), 0.989891941, kClose);
  EXPECT_NEAR(weighted(terms.ratio, all, 3), 1.021440287, kClose);
  backward(loss);
  const Tensor gradient = rows({0, 0.149182470F, -0.252305063F, 0, -0.059265458F, 0.215977409F, 0, 0, 0, 0, 0, 0});
  EXPECT_LT((now.grad() - gradient).abs().max().item<double>(), kClose);
}

// As TRL and verl count them: a ratio outside the range loses its gradient only on the side that the advantage pulls it to.
TEST(PolicyLosses, TheClipLimitsATokenOnOneSide) {
  const Tensor ratio = rows({1.5F, 1.5F, 0.5F, 0.5F, 1.1F, 1.5F}), advantages = rows({1, -1, 1, -1, 1, 0});
  EXPECT_TRUE(at::equal(clipped_terms(ratio, advantages, {}).limited, rows({1, 0, 0, 1, 0, 0}).to(at::kBool)));
  EXPECT_TRUE(at::equal(cispo_terms(ratio, ratio, advantages, 1.2).limited, rows({1, 1, 0, 0, 0, 1}).to(at::kBool)));
}

TEST(PolicyLosses, BeforeTheFirstUpdateTheRatioIsOne) {
  const ClippedTerms terms = clipped_terms(kLogprobs, kLogprobs.clone(), kAdvantages, 0.2);
  EXPECT_TRUE(at::equal(terms.ratio, at::ones_like(kLogprobs)));
}

TEST(PolicyLosses, WhereNothingCountsTheLossIsZeroWithALiveGraph) {
  Tensor now = kLogprobs.clone().requires_grad_(true);
  const Tensor loss = mean_over(reinforce_terms(now, kAdvantages), at::zeros_like(kLogprobs));
  EXPECT_EQ(loss.item<double>(), 0);
  backward(loss);
  EXPECT_TRUE(at::equal(now.grad(), at::zeros_like(kLogprobs)));
}

// 0 * inf would be no number: what does not count is not even read.
TEST(PolicyLosses, ATokenThatDoesNotCountMayBeAnything) {
  Tensor now = rows({-0.5F, -std::numeric_limits<float>::infinity(), -0.25F}).requires_grad_(true);
  const Tensor loss = weighted_sum(reinforce_terms(now, rows({2, 3, 4})), rows({0.5F, 0, 0.5F}));
  EXPECT_EQ(loss.item<double>(), 1);
  backward(loss);
  EXPECT_TRUE(at::equal(now.grad(), rows({-1, 0, -2})));
}

TEST(PolicyLosses, RatiosOfRowsAreAtEveryTokenOfThem) {
  Tensor values = rows({1, 2, 3, 10, 20}).requires_grad_(true);
  const std::vector<int64_t> lengths = {3, 0, 2};
  EXPECT_TRUE(at::equal(over_rows(values, lengths, RowReduce::mean), rows({2, 2, 2, 15, 15})));
  const Tensor sums = over_rows(values, lengths, RowReduce::sum);
  EXPECT_TRUE(at::equal(sums, rows({6, 6, 6, 30, 30})));
  backward((sums * rows({1, 0, 0, 0, 2})).sum());
  EXPECT_TRUE(at::equal(values.grad(), rows({1, 1, 1, 2, 2})));
  const std::vector<int64_t> too_few = {3};
  EXPECT_THROW(static_cast<void>(over_rows(values, too_few, RowReduce::sum)), Bug);
}

// Below and above 1 each with its own bound; a negative advantage is held at c.
TEST(PolicyLosses, EachSideOfTheClipHasItsOwnBound) {
  const Tensor ratio = rows({0.5F, 1.5F, 0.5F, 1.5F, 4.0F}), advantages = rows({1, 1, -1, -1, -1});
  const ClippedTerms terms = clipped_terms(ratio, advantages, {.min = 0.1, .max = 0.3, .c = 3});
  EXPECT_LT((terms.losses - rows({-0.5F, -1.3F, 0.9F, 1.5F, 3.0F})).abs().max().item<double>(), kClose);
  EXPECT_LT((clipped_terms(ratio, advantages, {.min = 0.1, .max = 0.3}).losses - rows({-0.5F, -1.3F, 0.9F, 1.5F, 4.0F}))
                .abs()
                .max()
                .item<double>(),
            kClose);
}

TEST(PolicyLosses, CispoWeighsWithTheRatioAndKeepsEveryTokensGradient) {
  Tensor logprobs = rows({-1, -2}).requires_grad_(true);
  const ClippedTerms terms = cispo_terms((logprobs - rows({-3, -2.5F})).exp(), logprobs, rows({2, -1}), 5);
  const double second = std::exp(0.5);
  EXPECT_LT((terms.losses - rows({10, static_cast<float>(-2 * second)})).abs().max().item<double>(), kClose);
  backward(terms.losses.sum());
  EXPECT_LT((logprobs.grad() - rows({-10, static_cast<float>(second)})).abs().max().item<double>(), kClose);
}

TEST(PolicyLosses, TheKlOfTheLossIsThatOfTheRewards) {
  const Tensor logprobs = rows({-0.5F, -1.1F}), reference = rows({-0.8F, -0.9F});
  for (const auto& [name, estimator] : enum_names(KlEstimator{})) {
    const Tensor found = kl_terms(estimator, logprobs, reference);
    for (int64_t i = 0; i < 2; ++i)
      EXPECT_NEAR(found[i].item<double>(), token_kl(estimator, logprobs[i].item<float>(), reference[i].item<float>()), kClose) << name;
  }
}

}  // namespace
}  // namespace kedge
