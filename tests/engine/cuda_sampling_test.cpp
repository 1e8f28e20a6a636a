// Drawing on a GPU beside the CPU. Skipped where there is none.
#include "kedge/engine/cuda_sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/random.h"

#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::normals;

class DrawsOnTheGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_cuda_devices() == 0) GTEST_SKIP() << "no CUDA device";
  }
  std::vector<std::optional<Drawn>> draw(const Tensor& logits, std::span<const Draw> draws) {
    return sampler_.draw(logits.to(at::Device(at::kCUDA, 0)), draws);
  }
  TokenSampler sampler_;
};

std::vector<SamplingConfig> all_configs() {
  return {{},
          {.use_greedy = true},
          {.temperature = 0.7},
          {.top_k = 5},
          {.top_p = 0.8},
          {.repetition_penalty = 1.3},
          {.temperature = 1.4, .top_k = 20, .top_p = 0.9, .repetition_penalty = 0.8}};
}

// Sums are single here and double there: a uniform number within 1e-6 of the edge of a token's share may draw the neighbour, so a draw must
// lie between the CPU's for a uniform number smaller and larger by that. What top-p keeps hangs on such a sum too, and a token more or less
// moves every edge; only there may some draws, one in a hundred, lie outside.
TEST_F(DrawsOnTheGpu, AreThoseOfTheCpu) {
  const Random random(5, 1);
  constexpr double kSumError = 1e-6;
  for (const int64_t size : {7, 50, 1000, 1023, 32000, 128256}) {
    const int64_t rows = 16, num_draws = 500;
    const Tensor logits = normals({rows, size}, static_cast<uint64_t>(size), 2);
    const std::vector<int32_t> used = {1, 2, 3, 3, 6};
    const std::vector<int32_t> ends = {4, 0};
    for (const SamplingConfig& config : all_configs()) {
      SCOPED_TRACE(kedge::str(size, " ids, temperature ", config.temperature, " top_k ", config.top_k, " top_p ", config.top_p));
      std::vector<Draw> draws, below, above;
      for (int64_t i = 0; i < num_draws; ++i) {
        const double uniform = random.uniform(static_cast<uint64_t>(i));
        Draw draw{i % rows, config, {.uniform = uniform}};
        if (config.repetition_penalty != 1) draw.from.used = used;
        if (i % 3 == 0) draw.from.not_yet = ends;
        if (i % 5 == 0) draw.from.vocab_size = size - 2;
        if (i % 2 == 0) draw.from.logprob_temperature = 0.6;
        draws.push_back(draw);
        draw.from.uniform = std::max(0.0, uniform - kSumError);
        below.push_back(draw);
        draw.from.uniform = std::min(1 - 0x1p-53, uniform + kSumError);
        above.push_back(draw);
      }
      TokenSampler on_cpu;
      const auto least = on_cpu.draw(logits, below), most = on_cpu.draw(logits, above), found = draw(logits, draws);
      int64_t outside = 0;
      for (size_t i = 0; i < draws.size(); ++i) {
        ASSERT_TRUE(found[i].has_value() && least[i].has_value() && most[i].has_value());
        outside += found[i]->token < least[i]->token || found[i]->token > most[i]->token ? 1 : 0;
        const double temperature = draws[i].from.logprob_temperature;
        const Tensor row = logits.select(0, draws[i].row).to(at::kDouble) / temperature;
        EXPECT_NEAR(found[i]->logprob, row.log_softmax(-1)[found[i]->token].item<double>(), 2e-5 / temperature);
        EXPECT_FALSE(i % 3 == 0 && (found[i]->token == 4 || found[i]->token == 0));
        EXPECT_FALSE(i % 5 == 0 && found[i]->token >= size - 2);
      }
      EXPECT_LE(outside, config.top_p > 0 && config.top_p < 1 ? num_draws / 100 : 0);
    }
  }
}

TEST_F(DrawsOnTheGpu, TheEdgesOfTheUniformNumberDrawTheFirstAndTheLast) {
  const Tensor logits = at::zeros({1, 128256});
  const std::vector<Draw> draws = {{0, {}, {.uniform = 0}}, {0, {}, {.uniform = 1 - 0x1p-53}}, {0, {}, {.uniform = 0.5}}};
  const auto found = draw(logits, draws);
  EXPECT_EQ(found[0]->token, 0);
  EXPECT_EQ(found[1]->token, 128255);
  EXPECT_NEAR(found[2]->token, 64128, 1);
}

TEST_F(DrawsOnTheGpu, RowsOfNoNumbersAreNothing) {
  Tensor logits = normals({4, 100}, 1);
  logits[1][50] = std::nanf("");
  logits[2][99] = INFINITY;
  logits[3].fill_(-INFINITY);
  std::vector<Draw> draws;
  for (int64_t row = 0; row < 4; ++row) draws.push_back({row, {}, {.uniform = 0.5}});
  const auto found = draw(logits, draws);
  EXPECT_TRUE(found[0].has_value());
  for (const size_t row : {1, 2, 3}) EXPECT_FALSE(found[row].has_value()) << row;
}

TEST_F(DrawsOnTheGpu, AForbiddenLogitIsNeverDrawn) {
  Tensor logits = at::full({1, 1000}, -INFINITY);
  logits[0][17] = 3;
  std::vector<Draw> draws;
  for (const SamplingConfig& config : all_configs()) draws.push_back({0, config, {.uniform = 0.999999}});
  for (const auto& drawn : draw(logits, draws)) EXPECT_EQ(drawn->token, 17);
}

// The same numbers give the same draws, however the threads run.
TEST_F(DrawsOnTheGpu, Repeat) {
  const Tensor logits = normals({8, 32000}, 3, 2);
  const Random random(5, 2);
  std::vector<Draw> draws;
  for (int64_t i = 0; i < 400; ++i)
    draws.push_back({i % 8, {.top_k = 200, .top_p = 0.9}, {.uniform = random.uniform(static_cast<uint64_t>(i))}});
  const auto first = draw(logits, draws);
  for (int again = 0; again < 5; ++again) {
    const auto found = draw(logits, draws);
    for (size_t i = 0; i < draws.size(); ++i) {
      EXPECT_EQ(found[i]->token, first[i]->token);
      EXPECT_EQ(found[i]->logprob, first[i]->logprob);
    }
  }
}

// The results of a step survive the next one, whose input is read from them on the device.
TEST_F(DrawsOnTheGpu, TwoStepsMayBeUnderWay) {
  const at::Device gpu(at::kCUDA, 0);
  const Random random(5, 3);
  TokenSampler on_cpu, sampler;
  std::vector<std::vector<std::optional<Drawn>>> wanted;
  for (uint64_t step = 0; step < 20; ++step) {
    const int64_t rows = 1 + static_cast<int64_t>(step * 7 % 40);  // buffers grow on the way
    Tensor logits = normals({rows, 1000}, step, 2);
    if (step % 3 == 0) logits[0][5] = std::nanf("");
    std::vector<Draw> draws;
    for (int64_t i = 0; i < rows; ++i) draws.push_back({i, {.use_greedy = i % 2 == 0}, {.uniform = random.uniform(step * 100 + 1)}});
    sampler.start(logits.to(gpu), draws);
    wanted.push_back(on_cpu.draw(logits, draws));
    // The next step's ids, backwards: what was not sampled is id 0, and ids that are known stay.
    std::vector<int32_t> pairs;
    for (int32_t i = 0; i < rows; ++i) pairs.insert(pairs.end(), {static_cast<int32_t>(rows) - i, i});
    const Tensor ids = at::full({rows + 1}, 77, at::TensorOptions(at::kInt).device(gpu));
    cuda::fill_awaited(sampler.newest(), at::tensor(pairs, at::kInt).to(gpu), ids);
    const auto compare = [](const std::vector<std::optional<Drawn>>& found, const std::vector<std::optional<Drawn>>& expected) {
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i].has_value(), expected[i].has_value());
        if (found[i] && i % 2 == 0) {
          EXPECT_EQ(found[i]->token, expected[i]->token);
        }
      }
    };
    if (step > 0) compare(sampler.take(), wanted[wanted.size() - 2]);
    const Tensor on_host = ids.cpu();
    EXPECT_EQ(on_host[0].item<int32_t>(), 77);
    for (int64_t i = 0; i < rows; i += 2) {
      const auto& drawn = wanted.back()[static_cast<size_t>(i)];
      EXPECT_EQ(on_host[rows - i].item<int32_t>(), drawn ? drawn->token : 0);
    }
  }
  // The last is left for the destructor.
}

}  // namespace
}  // namespace kedge
