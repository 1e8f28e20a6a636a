#include "kedge/engine/token_sampler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/tensors.h"

namespace kedge {
namespace {

TEST(TokenSampler, DrawsAreThoseOfTheirRows) {
  const Tensor logits = testing::normals({3, 50}, 8, 2);
  std::vector<Draw> draws;
  for (int64_t i = 0; i < 40; ++i)
    draws.push_back({i % 3, {.temperature = 0.5 + 0.1 * static_cast<double>(i % 4)}, {.uniform = static_cast<double>(i) / 40}});
  TokenSampler sampler;
  const auto drawn = sampler.draw(logits, draws);
  ASSERT_EQ(drawn.size(), draws.size());
  for (size_t i = 0; i < draws.size(); ++i) {
    const Tensor row = logits.select(0, draws[i].row);
    ASSERT_TRUE(drawn[i].has_value());
    const Tensor shares = (row / draws[i].config.temperature).softmax(-1, at::kDouble).cumsum(-1);
    // The first id whose cumulative share is beyond the uniform number; at an edge rounding decides.
    const auto wanted = (shares > draws[i].from.uniform).to(at::kInt).argmax().item<int64_t>();
    if (std::abs(shares[wanted].item<double>() - draws[i].from.uniform) > 1e-6) {
      EXPECT_EQ(drawn[i]->token, wanted);
    }
    EXPECT_NEAR(drawn[i]->logprob, row.log_softmax(-1)[drawn[i]->token].item<double>(), 1e-5);
  }
  EXPECT_TRUE(sampler.draw(logits, {}).empty());
}

TEST(TokenSampler, RowsOfBf16AreReadAsTheyAre) {
  const Tensor logits = testing::normals({2, 50}, 8, 2).to(at::kBFloat16);
  TokenSampler sampler;
  const std::vector<Draw> draws = {{1, {.use_greedy = true}, {}}};
  EXPECT_EQ(sampler.draw(logits, draws)[0]->token, logits.select(0, 1).to(at::kFloat).argmax().item<int64_t>());
}

TEST(TokenSampler, ARowOfNoNumbersIsNothingAndTheOthersAreDrawn) {
  Tensor logits = testing::normals({3, 50}, 8, 2);
  logits[1][4] = std::nanf("");
  TokenSampler sampler;
  const std::vector<Draw> draws = {{0, {}, {.uniform = 0.5}}, {1, {}, {.uniform = 0.5}}, {2, {}, {.uniform = 0.5}}};
  const auto drawn = sampler.draw(logits, draws);
  EXPECT_TRUE(drawn[0].has_value());
  EXPECT_FALSE(drawn[1].has_value());
  EXPECT_TRUE(drawn[2].has_value());
}

TEST(TokenSampler, TwoStepsMayBeUnderWayAndAreTakenInOrder) {
  TokenSampler sampler;
  const auto greedy = [](int64_t rows) {
    std::vector<Draw> draws;
    for (int64_t i = 0; i < rows; ++i) draws.push_back({i, {.use_greedy = true}, {}});
    return draws;
  };
  Tensor first = testing::normals({3, 50}, 8, 2);
  first[1][4] = std::nanf("");
  const Tensor second = testing::normals({2, 50}, 9, 2);
  sampler.start(first, greedy(3));
  const Tensor tokens = sampler.newest();
  ASSERT_EQ(tokens.sizes(), at::IntArrayRef({3}));
  EXPECT_EQ(tokens[0].item<int64_t>(), first[0].argmax().item<int64_t>());
  EXPECT_EQ(tokens[1].item<int64_t>(), -1);
  sampler.start(second, greedy(2));
  const auto of_first = sampler.take();
  ASSERT_EQ(of_first.size(), 3U);
  EXPECT_EQ(of_first[2]->token, first[2].argmax().item<int64_t>());
  EXPECT_FALSE(of_first[1].has_value());
  EXPECT_EQ(sampler.take()[1]->token, second[1].argmax().item<int64_t>());
}

}  // namespace
}  // namespace kedge
