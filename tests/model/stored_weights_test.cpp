#include "kedge/model/stored_weights.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/support/generation.h"
#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

// Of ranks in a random layout: each element of the complete model is in the shares of one shard group as often as tensor ranks have it.
TEST(StoredWeights, RanksOfAShardGroupHaveEverythingOnce) {
  std::mt19937 random(5);
  const char* const families[] = {testing::kTinyLlama, testing::kTinyQwen2, testing::kTinyMistral};
  for (int trial = 0; trial < 60; ++trial) {
    const ModelConfig config = testing::tiny_config(families[trial % 3]);
    const HeadOptions head = {};
    const std::vector<ParameterSpec> whole = make_parameters(config, head).specs;
    const int tensor_ranks = 1 << random() % 3, shard_ranks = static_cast<int>(random() % 5) + 1;
    for (int tensor_rank = 0; tensor_rank < tensor_ranks; ++tensor_rank) {
      std::vector<ParameterPart> parts;
      if (tensor_ranks > 1) parts = parameter_parts(config, head, {tensor_rank, tensor_ranks});
      int64_t all = 0;
      for (const ParameterSpec& spec : parts.empty() ? whole : split_specs(whole, parts)) all += spec.size();
      std::set<std::tuple<int64_t, int64_t, int64_t>> elements;
      int64_t found = 0;
      for (int rank = 0; rank < shard_ranks; ++rank) {
        std::set<int64_t> places;
        for (const StoredBlock& stored : stored_blocks(
                 whole, {.parts = parts, .is_cut = true, .shard_rank = rank, .shard_ranks = shard_ranks, .num_ranks = shard_ranks})) {
          const WeightBlock& block = stored.block;
          for (int64_t row = block.rows.begin; row < block.rows.end; ++row)
            for (int64_t column = block.columns.begin; column < block.columns.end; ++column) {
              elements.insert({block.parameter, row, column});
              places.insert(stored.begin + (row - block.rows.begin) * stored.stride + column - block.columns.begin);
            }
          found += block.size();
        }
        // No two of them are at one place, and none beyond the rank's share.
        const ShardLayout layout = shard_layout(parts.empty() ? whole : split_specs(whole, parts), shard_ranks, shard_ranks);
        const int64_t last = places.empty() ? -1 : *places.rbegin();
        ASSERT_LT(last, layout.own_size(rank));
      }
      ASSERT_EQ(found, all);
      ASSERT_EQ(std::ssize(elements), all);
    }
  }
}

}  // namespace
}  // namespace kedge
