// The optimizer on the 2 or 3 ranks that mpirun has started, beside one that works alone.
#include <gtest/gtest.h>

#include "kedge/core/error.h"
#include "kedge/train/optim/optimizer.h"

#include "tests/support/ranks.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tensors.h"

namespace kedge {
namespace {

using testing::normals;
using testing::same_bits;
using testing::TempFolder;
using testing::world;
using Init = ParameterSpec::Init;

// Several leaves in buckets that a layout cuts, and less than a leaf for all ranks.
const std::vector<ParameterSpec> kMany = {{"embedding", {30, 250}, true, Init::normal, -1},
                                          {"w0", {30, 250}, true, Init::normal, 0},
                                          {"n0", {5}, false, Init::ones, 0},
                                          {"w1", {35, 250}, true, Init::normal, 1},
                                          {"b1", {3000}, false, Init::zeros, 1},
                                          {"head", {10, 250}, true, Init::normal, -1}};
const std::vector<ParameterSpec> kFew = {{"w", {1, 100}, true, Init::normal, -1}};

ShardOptions among(const Group& group, Sharding kind) { return {.kind = kind, .shard = group}; }

struct Trained {
  Trained(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::ScalarType dtype, const ShardOptions& shards = {})
      : parameters(specs, {.dtype = dtype, .trainable = true, .shards = shards}), optimizer(config, parameters) {
    parameters.initialise(1, 0.5);
  }
  // The same gradients on every rank, as they are after they were summed.
  void step(uint64_t seed) {
    const Tensor gradient = normals({parameters.size()}, seed);
    for (const Parameters::OwnPart& part : parameters.own_parts())
      part.gradient.copy_(gradient.narrow(0, part.range.begin, length(part.range)));
    optimizer.step(0.1, 0.5);
  }
  void run(int from, int to) {
    for (int at = from; at < to; ++at) step(static_cast<uint64_t>(at));
  }
  // All weights on every rank, without what is between them.
  [[nodiscard]] Tensor masters() const {
    const std::vector<int64_t> begins = flat_begins(parameters.specs());
    Tensor all = at::zeros({parameters.size()});
    parameters.visit_masters([&](int parameter, const Tensor& master) {
      all.narrow(0, begins[static_cast<size_t>(parameter)], master.numel()).copy_(master.view({-1}));
    });
    return all;
  }
  Parameters parameters;
  Optimizer optimizer;
};

struct Case {
  const std::vector<ParameterSpec>& specs;
  at::ScalarType dtype;
  Sharding kind;
  OptimizerConfig config;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto* specs : {&kMany, &kFew})
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
      for (const MomentType moments : {MomentType::fp32, MomentType::bf16})
        for (const Sharding kind : {Sharding::none, Sharding::optimizer, Sharding::gradients, Sharding::all})
          all.push_back({*specs, dtype, kind, {.moments = moments}});
  return all;
}

// The folder of rank 0 on every rank.
Path common(const TempFolder& folder) {
  std::string path = folder.path().string();
  world().broadcast(path, 0);
  return path;
}

// Every rank writes its part.
void hand_over(const Optimizer& from, const Path& folder) {
  StateSnapshot snapshot;
  from.save(snapshot);
  if (world().rank() == 0) snapshot.write(folder);
  if (world().rank() > 0 && snapshot.has_tensors()) snapshot.write_tensors(folder, world().rank());
  world().barrier();
}

TEST(SharedOptimizer, GivesTheBitsOfOneThatWorksAlone) {
  for (const Case& one : cases()) {
    Trained shared(one.config, one.specs, one.dtype, among(world(), one.kind)), alone(one.config, one.specs, one.dtype);
    for (int step = 0; step < 4; ++step) {
      shared.run(step, step + 1);
      alone.run(step, step + 1);
      EXPECT_TRUE(same_bits(shared.masters(), alone.masters()));
      const WholeWeights whole(shared.parameters);
      for (size_t i = 0; i < one.specs.size(); ++i)
        EXPECT_TRUE(same_bits(shared.parameters.value(static_cast<int>(i)), alone.parameters.value(static_cast<int>(i))));
    }
  }
}

TEST(SharedOptimizer, KeepsOnlyItsShareOfTheMoments) {
  Trained shared({}, kMany, at::kFloat, among(world(), Sharding::optimizer));
  const int64_t size = shared.optimizer.first_moment().numel(), all = shared.parameters.size();
  EXPECT_LE(size, all / world().size() + ShardLayout::kLeaf * static_cast<int64_t>(shared.parameters.layout().num_buckets()));
  const Tensor sum = at::full({1}, size, at::kLong);
  world().all_reduce(sum, Reduce::sum);
  EXPECT_EQ(sum.item<int64_t>(), all);
  Trained whole({}, kMany, at::kFloat, among(world(), Sharding::none));
  EXPECT_EQ(whole.optimizer.first_moment().numel(), all);
}

TEST(SharedOptimizer, PlainDescentGivesTheSameOnEveryRank) {
  for (const Sharding kind : {Sharding::none, Sharding::all}) {
    Trained here({.name = OptimizerKind::sgd}, kMany, at::kBFloat16, among(world(), kind)),
        alone({.name = OptimizerKind::sgd}, kMany, at::kBFloat16);
    here.run(0, 3);
    alone.run(0, 3);
    EXPECT_TRUE(same_bits(here.masters(), alone.masters()));
  }
}

// Saved on all ranks and resumed on one alone; saved by one alone and resumed on all.
TEST(SharedOptimizer, WhatIsSavedDoesNotDependOnTheNumberOfRanks) {
  for (const Case& one : cases()) {
    const TempFolder from_ranks, from_one;
    const ShardOptions shards = among(world(), one.kind);
    Trained shared(one.config, one.specs, one.dtype, shards), alone(one.config, one.specs, one.dtype);
    shared.run(0, 3);
    alone.run(0, 3);
    const Path ranks_folder = common(from_ranks), one_folder = common(from_one);
    hand_over(shared.optimizer, ranks_folder);
    if (world().rank() == 0) {
      StateSnapshot snapshot;
      alone.optimizer.save(snapshot);
      snapshot.write(one_folder);
    }
    world().barrier();
    for (const char* name : {"optimizer.first_moment", "optimizer.second_moment"})
      EXPECT_EQ(StateFiles(ranks_folder).hash(name), StateFiles(one_folder).hash(name));
    Optimizer now_alone(one.config, alone.parameters), now_shared(one.config, shared.parameters);
    now_alone.load(StateFiles(ranks_folder));
    now_shared.load(StateFiles(one_folder));
    EXPECT_EQ(now_alone.num_steps(), 3);
    EXPECT_TRUE(same_bits(now_alone.first_moment(), alone.optimizer.first_moment()));
    EXPECT_TRUE(same_bits(now_shared.first_moment(), shared.optimizer.first_moment()));
    EXPECT_TRUE(same_bits(now_shared.second_moment(), shared.optimizer.second_moment()));
    world().barrier();  // nobody's folder goes before all have read it
  }
}

}  // namespace
}  // namespace kedge
