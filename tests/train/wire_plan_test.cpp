#include "kedge/train/wire_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kedge/model/parameters.h"

#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

WireInput tiny(Sharding kind, int shard_ranks, int num_ranks) {
  const auto specs = make_parameters(testing::tiny_config(testing::kTinyLlama), {}).specs;
  return {.network = specs, .trained = specs, .element_bytes = 2, .sharding = kind, .shard_ranks = shard_ranks, .num_ranks = num_ranks};
}

int64_t sum_in_group(const WireInput& input, const WireEvents& events) {
  int64_t sum = 0;
  for (int rank = 0; rank < input.shard_ranks; ++rank) sum += wire_bytes(input, events, rank).in_group;
  return sum;
}

constexpr int64_t kSize = 11'136;                           // of the flat buffer
constexpr int64_t kLayers = 2 * (1152 + 640 + 1792 + 896);  // of that, the layers' matrices

// Together the ranks of a group send every element to every other rank, once for a gather and once for a sum.
TEST(WirePlan, AddsUpToEveryElementForEveryOtherRank) {
  for (const int ranks : {2, 3, 4, 8}) {
    const int64_t others = ranks - 1;
    const WireEvents pass{.passes = 1}, update{.updates = 1}, whole{.wholes = 1};
    for (const Sharding kind : {Sharding::none, Sharding::optimizer, Sharding::gradients})
      EXPECT_EQ(sum_in_group(tiny(kind, ranks, ranks), pass), others * kSize * 4);
    EXPECT_EQ(sum_in_group(tiny(Sharding::none, ranks, ranks), update), others * kSize * 4);
    EXPECT_EQ(sum_in_group(tiny(Sharding::optimizer, ranks, ranks), update), others * kSize * 2);
    EXPECT_EQ(sum_in_group(tiny(Sharding::gradients, ranks, ranks), update), others * kSize * 2);
    EXPECT_EQ(sum_in_group(tiny(Sharding::all, ranks, ranks), pass), others * (kSize * 4 + 2 * kLayers * 2));
    EXPECT_EQ(sum_in_group(tiny(Sharding::all, ranks, ranks), update), others * (kSize - kLayers) * 2);
    EXPECT_EQ(sum_in_group(tiny(Sharding::all, ranks, ranks), whole), others * kLayers * 2);
    EXPECT_EQ(sum_in_group(tiny(Sharding::optimizer, ranks, ranks), whole), 0);
  }
}

// And in parts of one length.
TEST(WirePlan, FastSumsTravelOncePerUpdate) {
  WireInput input = tiny(Sharding::optimizer, 4, 4);
  input.collectives = Collectives::fast;
  EXPECT_EQ(sum_in_group(input, {.passes = 5}), 0);
  const ShardLayout layout = shard_layout(input.trained, 4, 4);
  int64_t longest = 0;
  for (size_t b = 0; b < layout.num_buckets(); ++b) {
    int64_t most = 0;
    for (int rank = 0; rank < 4; ++rank) most = std::max(most, length(layout.part(b, rank)));
    longest += most;
  }
  EXPECT_GE(4 * longest, kSize);
  EXPECT_EQ(sum_in_group(input, {.passes = 5, .updates = 1}), 3 * (4 * longest * 4 + kSize * 2));
}

// Of three groups each sums a third: a rank sends the two others' thirds of its part, and the sum of its own third twice.
TEST(WirePlan, BetweenGroupsTravelsARanksPartTwice) {
  const WireInput input = tiny(Sharding::all, 2, 6);
  int64_t sum = 0;
  for (int rank = 0; rank < 2; ++rank) sum += wire_bytes(input, {.passes = 1}, rank).between_groups;
  EXPECT_NEAR(static_cast<double>(sum), 4.0 / 3 * kSize * 4, 4 * 4 * 2);  // thirds of whole elements
  EXPECT_EQ(wire_bytes(tiny(Sharding::all, 4, 4), {.passes = 1}, 0).between_groups, 0);
  EXPECT_EQ(wire_bytes(tiny(Sharding::all, 1, 1), {.passes = 1, .updates = 1}, 0).in_group, 0);
}

// In the backward pass inputs are put together once more, half a sum each; a forward pass sends as much as before.
TEST(WirePlan, RanksThatDivideTokensSendInputsOnceMore) {
  for (const int ranks : {1, 2, 4, 8}) {
    TensorWireInput plan{.tensor_ranks = ranks, .layers = 3, .hidden = 16, .vocabulary = 31, .element_bytes = 2};
    const int64_t trained = tensor_wire_bytes(plan, {.trained = 8}), seen = tensor_wire_bytes(plan, {.seen = 8});
    plan.divides_tokens = true;
    EXPECT_EQ(tensor_wire_bytes(plan, {.seen = 8}), seen);
    EXPECT_EQ(tensor_wire_bytes(plan, {.trained = 8}) - trained, 8 * 16 * 2 * 7 * (ranks - 1) / ranks);
  }
}

}  // namespace
}  // namespace kedge
