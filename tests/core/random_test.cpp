#include "kedge/core/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

// Numbers without another source are made by tests/golden/random_vectors.py.

namespace kedge {
namespace {

using ::testing::ElementsAre;

TEST(Random, PhiloxGivesItsPublishedVectors) {  // known answers of the Random123 distribution, philox 4x32, 10 rounds
  EXPECT_THAT(philox({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  const uint32_t ones = 0xffffffff;
  EXPECT_THAT(philox({ones, ones, ones, ones}, {ones, ones}), ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Random, ADrawDependsOnSeedStreamAndPositionAlone) {
  EXPECT_EQ(Random(1234, 5).bits(6), 0xb735992a979367fbULL);
  EXPECT_EQ(Random::stream_of({1, 2, 3}), 0x712380fde4560b8ULL);
  EXPECT_NE(Random(1234, 5).bits(6), Random(1234, 6).bits(5));
  EXPECT_NE(Random::stream_of({1, 2, 3}), Random::stream_of({1, 3, 2}));
}

TEST(Random, UniformsHaveTheirBits) {
  const Random random(42, 7);
  EXPECT_EQ(random.uniform(0), 0.8958139895475427);
  EXPECT_EQ(random.uniform(1), 0.3752346986201399);
  EXPECT_EQ(random.uniform(2), 0.9375101805534775);
  EXPECT_EQ(random.uniform(3), 0.4932073039420707);
}

// Two units in the last place: our logarithm and square root are ours, the reference's are the platform's.
void expect_close(double value, double expected) { EXPECT_NEAR(value, expected, 4.5e-16 * std::abs(expected)) << expected; }

TEST(Random, NormalsAreQuantiles) {
  const Random random(42, 7);
  expect_close(random.normal(0), 1.2580545718832397);
  expect_close(random.normal(1), -0.3180204862239541);
  expect_close(random.normal(2), 1.5342033291414514);
  expect_close(random.normal(3), -0.01702758679009279);
  using random_detail::normal_quantile;
  expect_close(normal_quantile(0.075), -1.4395314709384557);
  expect_close(normal_quantile(0.0750001), -1.4395307645017297);
  expect_close(normal_quantile(0.1), -1.2815515655446008);
  expect_close(normal_quantile(0.3), -0.5244005127080407);
  expect_close(normal_quantile(0.9), 1.2815515655446008);
  expect_close(normal_quantile(0.999), 3.090232306167813);
  expect_close(normal_quantile(1e-5), -4.2648907939228256);
  expect_close(normal_quantile(1e-12), -7.034483825301132);
  expect_close(normal_quantile(1 - 1e-9), 5.997807019601638);
  EXPECT_EQ(normal_quantile(0.5), 0);
}

TEST(Random, NormalsAreTheSameBitsEverywhere) {
  // Known at compile time, so the compiler's own exact arithmetic is held against the machine's.
  constexpr double kAtCompileTime = Random(42, 7).normal(2);
  const volatile uint64_t seed = 42;
  EXPECT_EQ(Random(seed, 7).normal(2), kAtCompileTime);
  double sum = 0, squares = 0;
  uint64_t hash = 0;
  for (uint64_t i = 0; i < 100000; ++i) {
    const double x = Random(seed, 9).normal(i);
    sum += x, squares += x * x;
    hash = hash * 31 + std::bit_cast<uint64_t>(x);
  }
  EXPECT_EQ(hash, 0xe3ec6f84a819e65ULL);
  EXPECT_NEAR(sum / 1e5, 0, 0.0127);           // four standard errors of the mean
  EXPECT_NEAR(squares / 1e5, 1, 4 * 0.00447);  // and of the variance
}

TEST(Random, DrawsBelowABoundCoverItEvenly) {
  const Random random(3, 4);
  std::array<int, 7> counts{};
  for (uint64_t i = 0; i < 70000; ++i) ++counts.at(random.below(7, i));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 4 * 93);  // four standard deviations
  EXPECT_EQ(random.below(1, 0), 0U);
}

TEST(Random, APermutationHasEveryRowOnce) {
  EXPECT_THAT(permutation(10, 1234), ElementsAre(9, 3, 7, 1, 8, 2, 5, 6, 0, 4));
  EXPECT_THAT(permutation(10, 1235), ElementsAre(0, 7, 5, 2, 6, 8, 9, 3, 4, 1));
  EXPECT_TRUE(permutation(0, 1).empty());
  EXPECT_THAT(permutation(1, 1), ElementsAre(0));
  std::vector<int64_t> large = permutation(100003, 7);
  EXPECT_FALSE(std::is_sorted(large.begin(), large.end()));
  EXPECT_EQ(std::set<int64_t>(large.begin(), large.end()).size(), large.size());
}

}  // namespace
}  // namespace kedge
