#include "kedge/model/spec/tensor_split.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "kedge/core/error.h"
#include "kedge/core/random.h"

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

// A random shape that so many ranks can split.
ModelConfig random_config(uint64_t seed, int size) {
  const Random random(seed, 1);
  const auto below = [&](uint64_t at, int64_t count) { return static_cast<int64_t>(random.uniform(at) * static_cast<double>(count)); };
  ModelConfig config;
  config.family = below(0, 2) == 0 ? Family::gpt2 : Family::qwen3;
  const bool gpt2 = config.family == Family::gpt2;
  config.vocab_size = size + below(1, 50);
  config.hidden_size = 2 + below(2, 20);
  config.num_layers = 1 + below(3, 3);
  const int64_t kv_choices[] = {1, size, 2 * size};
  config.num_kv_heads = kv_choices[below(4, 3)];
  config.num_heads = config.num_kv_heads * size * (1 + below(5, 2));
  if (gpt2) config.num_kv_heads = config.num_heads;
  config.head_dim = 2 * (1 + below(6, 4));
  config.mlp_size = size * (1 + below(7, 9));
  config.gated = !gpt2;
  config.learned_positions = config.norm_bias = config.out_bias = config.mlp_bias = gpt2;
  config.max_positions = 16;
  config.qkv_bias = gpt2 || below(8, 2) == 0;
  config.qk_norm = !gpt2;
  config.tied = below(9, 2) == 0;
  return config;
}

// Every element of every parameter is on some rank; on as many as its rows say, and those are neighbours.
void expect_complete(const std::vector<ParameterSpec>& specs, const std::vector<std::vector<ParameterPart>>& parts) {
  const int size = static_cast<int>(parts.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    const int64_t rows = specs[i].shape[0], columns = specs[i].size() / rows;
    std::vector<std::set<int>> holders(static_cast<size_t>(rows * columns));
    for (int rank = 0; rank < size; ++rank) {
      const ParameterPart& part = parts[static_cast<size_t>(rank)][i];
      int64_t own = 0;
      for (const ParameterPart::Rows& range : part.rows) {
        EXPECT_EQ(range.own, own) << specs[i].name;  // one after the other
        own += range.count;
        for (int64_t row = range.whole; row < range.whole + range.count; ++row)
          for (int64_t column = part.columns.begin; column < part.columns.end; ++column)
            holders[static_cast<size_t>(row * columns + column)].insert(rank);
        EXPECT_TRUE(range.sharers == 1 || part.has_summands || range.sharers == size) << specs[i].name;
      }
    }
    for (int rank = 0; rank < size; ++rank) {
      const ParameterPart& part = parts[static_cast<size_t>(rank)][i];
      for (const ParameterPart::Rows& range : part.rows) {
        std::set<int> wanted;
        for (int other = 0; other < range.sharers; ++other) wanted.insert(rank / range.sharers * range.sharers + other);
        for (int64_t row = range.whole; row < range.whole + range.count; ++row)
          for (int64_t column = part.columns.begin; column < part.columns.end; ++column)
            ASSERT_EQ(holders[static_cast<size_t>(row * columns + column)], wanted) << specs[i].name;
      }
    }
    for (const std::set<int>& some : holders) ASSERT_FALSE(some.empty()) << specs[i].name;
  }
}

TEST(TensorSplit, EveryElementIsWhereTheRanksSayItIs) {
  for (const int size : {1, 2, 3, 4, 8})
    for (uint64_t seed = 0; seed < 40; ++seed) {
      const ModelConfig config = random_config(seed, size);
      const HeadOptions head{seed % 3 == 0 ? HeadKind::score : HeadKind::language, 2, seed % 2 == 0};
      check_tensor_split(config, size, "here");
      const ModelParameters places = make_parameters(config, head);
      std::vector<std::vector<ParameterPart>> parts, of_adapters;
      const std::vector<LinearSlice> slices = linear_slices(config, places);
      const std::vector<ParameterSpec> adapters = adapter_specs(slices, 3, {});
      for (int rank = 0; rank < size; ++rank) {
        parts.push_back(parameter_parts(config, head, {rank, size}));
        of_adapters.push_back(adapter_parts(config, head, slices, adapters, {rank, size}));
        // The shapes are those of the network that a rank computes.
        const std::vector<ParameterSpec> own = split_specs(places.specs, parts.back());
        const ModelParameters wanted = make_parameters(split_config(config, {rank, size}), head);
        for (size_t i = 0; i < own.size(); ++i) EXPECT_EQ(own[i].shape, wanted.specs[i].shape) << own[i].name;
      }
      expect_complete(places.specs, parts);
      expect_complete(adapters, of_adapters);
    }
}

// Of norms around the layers' products each rank has a summand of the gradients if ranks divide the tokens, otherwise the sum.
TEST(TensorSplit, NormsOfOwnTokensHaveSummands) {
  const ModelConfig config = random_config(3, 2);
  const ModelParameters places = make_parameters(config, {});
  for (const bool divides_tokens : {false, true}) {
    const auto parts = parameter_parts(config, {}, {1, 2, divides_tokens});
    const auto has_summands = [&](int place) { return place < 0 ? divides_tokens : parts[static_cast<size_t>(place)].has_summands; };
    EXPECT_EQ(has_summands(places.norm), divides_tokens);
    EXPECT_EQ(has_summands(places.norm_bias), divides_tokens);
    for (const LayerParameters& layer : places.layers)
      for (const int place : {layer.norm1, layer.norm1_bias, layer.norm2, layer.norm2_bias}) EXPECT_EQ(has_summands(place), divides_tokens);
    EXPECT_FALSE(has_summands(places.layers[0].out));
    EXPECT_FALSE(has_summands(places.embedding));
  }
}

TEST(TensorSplit, SaysWhatCannotBeDivided) {
  ModelConfig config = random_config(1, 4);
  config.num_heads = 6, config.num_kv_heads = 3, config.mlp_size = 8;
  EXPECT_EQ(testing::error_of([&] { return check_tensor_split(config, 4, "model.tensor_model_parallel_size"), 0; }),
            "model.tensor_model_parallel_size: 4 ranks do not divide the model's 6 attention heads");
  EXPECT_EQ(testing::error_of([&] { return check_tensor_split(config, 2, "here"), 0; }),
            "here: 2 ranks neither divide the model's 3 key-value heads nor are a multiple of them");
  config.mlp_size = 10;
  EXPECT_EQ(testing::error_of([&] { return check_tensor_split(config, 3, "here"), 0; }),
            "here: 3 ranks do not divide the model's MLP of 10");
}

}  // namespace
}  // namespace kedge
