#include "kedge/model/kernels/cpu_attention_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace kedge::cpu {
namespace {

// Numbers between -1 and 1, the same everywhere.
std::vector<float> block_numbers(int64_t count, int seed) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(i) + seed)));
  return numbers;
}

// Sizes with a loop of their own, one without, and blocks that are not whole.
struct BlockSize {
  int64_t num_keys, dim;
};
class AttentionBlocks : public ::testing::TestWithParam<BlockSize> {
 protected:
  const int64_t num_keys = GetParam().num_keys, dim = GetParam().dim;
  const std::vector<float> keys = block_numbers(kKeys * dim, 1), queries = block_numbers(kQueries * dim, 2);
  const std::vector<float> weights = block_numbers(kKeys * kQueries, 3);
  // A sum of dim or num_keys products of numbers up to 1, rounded once each.
  const float tolerance = 1e-6F * static_cast<float>(std::max(dim, num_keys));
};

TEST_P(AttentionBlocks, ScoresAreProductsOfKeysAndQueries) {
  std::vector<float> scores(static_cast<size_t>(kKeys * kQueries), 99);
  score_block(queries.data(), keys.data(), num_keys, dim, scores.data());
  for (int64_t j = 0; j < num_keys; ++j)
    for (int64_t q = 0; q < kQueries; ++q) {
      double sum = 0;
      for (int64_t d = 0; d < dim; ++d)
        sum += double{keys[static_cast<size_t>(j * dim + d)]} * queries[static_cast<size_t>(d * kQueries + q)];
      ASSERT_NEAR(scores[static_cast<size_t>(j * kQueries + q)], sum, tolerance) << j << " " << q;
    }
}

TEST_P(AttentionBlocks, MixingAddsRowsByTheirWeights) {
  std::vector<float> out = block_numbers(kQueries * dim, 4);
  const std::vector<float> before = out;
  mix_block(weights.data(), keys.data(), num_keys, dim, out.data());
  for (int64_t q = 0; q < kQueries; ++q)
    for (int64_t d = 0; d < dim; ++d) {
      double sum = before[static_cast<size_t>(q * dim + d)];
      for (int64_t j = 0; j < num_keys; ++j)
        sum += double{weights[static_cast<size_t>(j * kQueries + q)]} * keys[static_cast<size_t>(j * dim + d)];
      ASSERT_NEAR(out[static_cast<size_t>(q * dim + d)], sum, tolerance) << q << " " << d;
    }
}

TEST_P(AttentionBlocks, SpreadingAddsEveryQueryToTheRowsAndLeavesOthersAlone) {
  std::vector<float> rows = keys;
  spread_block(weights.data(), queries.data(), num_keys, dim, rows.data());
  for (int64_t j = 0; j < kKeys; ++j)
    for (int64_t d = 0; d < dim; ++d) {
      double sum = keys[static_cast<size_t>(j * dim + d)];
      for (int64_t q = 0; j < num_keys && q < kQueries; ++q)
        sum += double{weights[static_cast<size_t>(j * kQueries + q)]} * queries[static_cast<size_t>(q * dim + d)];
      ASSERT_NEAR(rows[static_cast<size_t>(j * dim + d)], sum, tolerance) << j << " " << d;
    }
}

// Two blocks, the second with larger scores, give the softmax over both.
TEST_P(AttentionBlocks, FoldingBlockByBlockIsTheSoftmaxOverAll) {
  std::vector<float> out(static_cast<size_t>(kQueries * dim), 0);
  std::vector<float> first = weights, second = block_numbers(kKeys * kQueries, 5);
  for (float& score : second) score += 1.5F;
  const std::vector<float> scores[] = {first, second};
  SoftmaxSoFar softmax;
  for (std::vector<float>* block : {&first, &second}) {
    fold_block(softmax, block->data(), num_keys, dim, out.data());
    mix_block(block->data(), keys.data(), num_keys, dim, out.data());
  }
  for (int64_t q = 0; q < kQueries; ++q) {
    double sum = 0, most = -1e9;
    for (const std::vector<float>& block : scores)
      for (int64_t j = 0; j < num_keys; ++j) {
        const double score = block[static_cast<size_t>(j * kQueries + q)];
        sum += std::exp2(score);
        most = std::max(most, score);
      }
    const auto at = static_cast<size_t>(q);
    ASSERT_EQ(softmax.most[at], static_cast<float>(most));
    ASSERT_NEAR(softmax.sum[at], sum / std::exp2(most), tolerance);
    for (int64_t d = 0; d < dim; ++d) {
      double mixed = 0;
      for (const std::vector<float>& block : scores)
        for (int64_t j = 0; j < num_keys; ++j)
          mixed += std::exp2(double{block[static_cast<size_t>(j * kQueries + q)]}) / sum * keys[static_cast<size_t>(j * dim + d)];
      ASSERT_NEAR(out[static_cast<size_t>(q * dim + d)] / softmax.sum[at], mixed, tolerance);
    }
  }
}

TEST_P(AttentionBlocks, GradientsOfScoresAreThoseOfTheSoftmax) {
  const std::vector<float> log_sum(kQueries, 3), along = block_numbers(kQueries, 6), before = block_numbers(kKeys * kQueries, 7);
  std::vector<float> probs = weights, dscores = before;
  score_gradient_block(log_sum.data(), along.data(), num_keys, probs.data(), dscores.data());
  for (int64_t i = 0; i < num_keys * kQueries; ++i) {
    const auto at = static_cast<size_t>(i), q = static_cast<size_t>(i % kQueries);
    const double prob = std::exp2(double{weights[at]} - log_sum[q]);
    ASSERT_NEAR(probs[at], prob, 1e-6);
    ASSERT_NEAR(dscores[at], prob * (double{before[at]} - along[q]), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, AttentionBlocks,
                         ::testing::Values(BlockSize{64, 16}, BlockSize{64, 64}, BlockSize{13, 64}, BlockSize{1, 40}, BlockSize{37, 80}));

TEST(ProductSum, OfAnyLength) {
  const std::vector<float> a = block_numbers(100, 1), b = block_numbers(100, 2);
  for (const int64_t size : {0, 1, 15, 16, 33, 100}) {
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += double{a[static_cast<size_t>(i)]} * b[static_cast<size_t>(i)];
    EXPECT_NEAR(product_sum(a.data(), b.data(), size), sum, 1e-5) << size;
  }
}

}  // namespace
}  // namespace kedge::cpu
