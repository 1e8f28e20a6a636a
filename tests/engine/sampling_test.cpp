#include "kedge/engine/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kedge {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

const std::vector<float> kLogits = {1.0F, 2.0F, 0.5F, -1.0F, 2.0F, 0.0F};

std::optional<Drawn> draw(const std::vector<float>& logits, const SamplingConfig& config, const SamplingRow& row = {}) {
  static SamplingScratch scratch;  // what a draw leaves there must not matter to the next
  return draw_token(logits, config, row, scratch);
}

std::vector<double> softmax(const std::vector<double>& logits) {
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  std::vector<double> shares;
  for (const double logit : logits) shares.push_back(std::exp(logit) / sum);
  return shares;
}

constexpr double kNever = -std::numeric_limits<double>::infinity();

// 20,000 draws against exact shares: a token of share zero never comes, and chi-square stays under its 99.9 % quantile for at most five
// degrees of freedom (20.5). The seeds are fixed, so the verdict is too.
void expect_distribution(const SamplingConfig& config, const std::vector<double>& shares, const std::vector<int32_t>& used = {}) {
  constexpr int kDraws = 20000;
  std::vector<int> counts(shares.size());
  const SampleKey key{.seed = 7, .prompt = 3};
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(draw(kLogits, config, {.used = used, .uniform = key.uniform(i)})->token)];
  double chi_square = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    const double expected = shares[i] * kDraws;
    if (expected == 0) {
      EXPECT_EQ(counts[i], 0) << "token " << i;
    } else {
      chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
  }
  EXPECT_LT(chi_square, 20.5);
}

TEST(Sampling, DrawsFromTheSoftmax) { expect_distribution({}, softmax({1, 2, 0.5, -1, 2, 0})); }

TEST(Sampling, TemperatureDividesTheLogits) { expect_distribution({.temperature = 0.5}, softmax({2, 4, 1, -2, 4, 0})); }

TEST(Sampling, TiesWithTheKthSurvive) {
  expect_distribution({.top_k = 1}, softmax({kNever, 2, kNever, kNever, 2, kNever}));
  expect_distribution({.top_k = 3}, softmax({1, 2, kNever, kNever, 2, kNever}));
  expect_distribution({.top_k = 100}, softmax({1, 2, 0.5, -1, 2, 0}));
}

TEST(Sampling, TopPKeepsTheTokenThatPassesTheMark) {
  // Shares from the largest on: 0.355, 0.355, 0.131, 0.079, 0.048, 0.018 (rounded); sums 0.355, 0.711, 0.841, ...
  expect_distribution({.top_p = 0.2}, softmax({kNever, 2, kNever, kNever, kNever, kNever}));  // the first of equals
  expect_distribution({.top_p = 0.6}, softmax({kNever, 2, kNever, kNever, 2, kNever}));
  expect_distribution({.top_p = 0.75}, softmax({1, 2, kNever, kNever, 2, kNever}));
  expect_distribution({.top_p = 0}, softmax({1, 2, 0.5, -1, 2, 0}));
}

TEST(Sampling, ThePenaltyDividesNegativeLogitsToo) {
  const std::vector<int32_t> used = {1, 3, 1};
  expect_distribution({.repetition_penalty = 2}, softmax({1, 1, 0.5, -0.5, 2, 0}), used);
}

TEST(Sampling, TheRulesWorkTogetherInTheirOrder) {
  // Temperature 0.5: 2 4 1 -2 4 0; penalty 2 on token 1: 2 2 1 -2 4 0; top-k 3: 2 2 . . 4 .; top-p 0.8: shares 0.107 0.107 0.787,
  // so 4 and then the first of the two equals.
  const std::vector<int32_t> used = {1};
  expect_distribution({.temperature = 0.5, .top_k = 3, .top_p = 0.8, .repetition_penalty = 2},
                      softmax({2, kNever, kNever, kNever, 4, kNever}), used);
}

TEST(Sampling, GreedyTakesTheFirstOfTheLargestAndNothingElseMatters) {
  EXPECT_EQ(draw(kLogits, {.use_greedy = true, .temperature = 9, .repetition_penalty = 5}, {.uniform = 0.99})->token, 1);
}

TEST(Sampling, TheLogprobIsOfTheRawLogits) {
  const double log_sum = std::log(std::exp(1) + 2 * std::exp(2) + std::exp(0.5) + std::exp(-1) + 1);
  const std::vector<int32_t> end = {1};
  const auto greedy = draw(kLogits, {.use_greedy = true}, {.not_yet = end});
  EXPECT_EQ(greedy->token, 4);
  EXPECT_NEAR(greedy->logprob, 2 - log_sum, 1e-6);
  EXPECT_NEAR(draw(kLogits, {.temperature = 0.1, .top_k = 2}, {.uniform = 0.9})->logprob, 2 - log_sum, 1e-6);
}

TEST(Sampling, PaddedIdsAndTheEndBeforeItsTimeAreNotDrawn) {
  const std::vector<int32_t> end = {0};
  for (int i = 0; i < 100; ++i) {
    const int32_t token = draw(kLogits, {}, {.not_yet = end, .vocab_size = 3, .uniform = i / 100.0})->token;
    EXPECT_TRUE(token == 1 || token == 2) << token;
  }
  EXPECT_FALSE(draw(kLogits, {}, {.not_yet = end, .vocab_size = 1}).has_value());
}

TEST(Sampling, LogitsThatAreNoNumbersGiveNothing) {
  EXPECT_FALSE(draw({1, kNan, 2}, {}).has_value());
  EXPECT_FALSE(draw({1, kInfinity, 2}, {}).has_value());
  EXPECT_FALSE(draw({-kInfinity, -kInfinity}, {}).has_value());
  EXPECT_EQ(draw({1, -kInfinity}, {}, {.uniform = 0.999999})->token, 0);
}

// A vocabulary of many blocks of partial sums, of which some are all but empty.
std::vector<float> many_logits() {
  std::vector<float> logits;
  const Random random(5, 1);
  for (uint64_t i = 0; i < 1500; ++i) logits.push_back(static_cast<float>(random.normal(i) * 3) - (i / 128 % 3 == 1 ? 100.0F : 0.0F));
  return logits;
}

// The middle of every token's share of [0, 1) draws that token, or one drawn together with it where the share is within rounding.
void expect_shares(const std::vector<float>& logits, const std::vector<double>& shares, const SamplingConfig& config,
                   const SamplingRow& row = {}) {
  double sum = 0;
  for (size_t id = 0; id < shares.size(); ++id) {
    SamplingRow one = row;
    one.uniform = sum + shares[id] / 2;
    // Sums of 1,500 powers in fp32, 16 side by side: 94 roundings of 2^-24 at most, and as much again in the powers.
    if (shares[id] > 4e-5) {
      EXPECT_EQ(draw(logits, config, one)->token, static_cast<int32_t>(id));
    }
    sum += shares[id];
  }
}

std::vector<double> doubles(const std::vector<float>& logits) { return {logits.begin(), logits.end()}; }

TEST(Sampling, EveryTokenOfALargeVocabularyHasItsShare) {
  const std::vector<float> logits = many_logits();
  expect_shares(logits, softmax(doubles(logits)), {});
  std::vector<double> warmer = doubles(logits);
  for (double& logit : warmer) logit /= 1.7;
  expect_shares(logits, softmax(warmer), {.temperature = 1.7});
  std::vector<double> allowed = doubles(logits);
  allowed[300] = allowed[2] = kNever;
  std::fill(allowed.begin() + 1200, allowed.end(), kNever);
  const std::vector<int32_t> not_yet = {300, 2};
  expect_shares(logits, softmax(allowed), {}, {.not_yet = not_yet, .vocab_size = 1200});
}

TEST(Sampling, RulesOfALargeVocabulary) {
  const std::vector<float> logits = many_logits();
  const std::vector<double> shares = softmax(doubles(logits));
  std::vector<size_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  for (const double p : {0.05, 0.5, 0.93, 0.999}) {
    std::vector<double> kept(logits.size(), kNever);
    double sum = 0;
    for (size_t i = 0; sum <= p; ++i) sum += shares[order[i]], kept[order[i]] = static_cast<double>(logits[order[i]]);
    expect_shares(logits, softmax(kept), {.top_p = p});
  }
  for (const size_t k : {1U, 40U, 700U}) {
    std::vector<double> kept(logits.size(), kNever);
    for (size_t i = 0; i < k; ++i) kept[order[i]] = static_cast<double>(logits[order[i]]);
    expect_shares(logits, softmax(kept), {.top_k = static_cast<int64_t>(k)});
  }
}

TEST(Sampling, TheEndOfTheIntervalDrawsATokenThatIsAllowed) {
  std::vector<float> logits(1000, -kInfinity);
  for (const size_t id : {3U, 400U, 500U}) logits[id] = 1;
  const double last = std::nextafter(1.0, 0.0);
  EXPECT_EQ(draw(logits, {}, {.uniform = last})->token, 500);
  EXPECT_EQ(draw(logits, {}, {.uniform = 0})->token, 3);
  logits[500] = -40;  // vanishes in the sum
  EXPECT_EQ(draw(logits, {}, {.uniform = last})->token, 400);
  // The smallest temperature is the likeliest token, not a division by zero.
  logits[3] = 0.5F;
  EXPECT_EQ(draw(logits, {.temperature = 1e-300}, {.uniform = 0})->token, 400);
}

TEST(Sampling, ADrawIsAFunctionOfItsKeyAlone) {
  const SampleKey key{1, 2, 3, 4, 5};
  EXPECT_EQ(key.uniform(6), (SampleKey{1, 2, 3, 4, 5}.uniform(6)));
  std::vector<double> others = {key.uniform(7),
                                SampleKey{2, 2, 3, 4, 5}.uniform(6),
                                SampleKey{1, 3, 3, 4, 5}.uniform(6),
                                SampleKey{1, 2, 4, 4, 5}.uniform(6),
                                SampleKey{1, 2, 3, 5, 5}.uniform(6),
                                SampleKey{1, 2, 3, 4, 6}.uniform(6)};
  for (const double other : others) EXPECT_NE(other, key.uniform(6));
}

}  // namespace
}  // namespace kedge
