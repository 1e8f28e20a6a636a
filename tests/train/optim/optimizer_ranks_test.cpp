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

// Ten blocks of 128 with the border of the decaying ones inside a share, and fewer blocks than ranks.
const std::vector<ParameterSpec> kMany = {
    {"w", {3, 250}, true, Init::normal}, {"n", {5}, false, Init::ones}, {"b", {300}, false, Init::zeros}};
const std::vector<ParameterSpec> kFew = {{"w", {1, 100}, true, Init::normal}};

struct Trained {
  Trained(const OptimizerConfig& config, const std::vector<ParameterSpec>& specs, at::ScalarType dtype, const Group& group)
      : parameters(specs, {.dtype = dtype, .trainable = true}), optimizer(config, parameters, group) {
    parameters.initialise(1, 0.5);
  }
  // The same gradients on every rank, as they are after they were summed.
  void run(int from, int to) {
    for (int step = from; step < to; ++step) {
      parameters.flat_gradient().copy_(normals(parameters.flat_gradient().sizes(), static_cast<uint64_t>(step)));
      optimizer.step(0.1, 0.5);
    }
  }
  Parameters parameters;
  Optimizer optimizer;
};

struct Case {
  const std::vector<ParameterSpec>& specs;
  at::ScalarType dtype;
  OptimizerConfig config;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto* specs : {&kMany, &kFew})
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
      for (const MomentType moments : {MomentType::fp32, MomentType::bf16})
        for (const bool offload : {false, true}) all.push_back({*specs, dtype, {.moments = moments, .offload_adam_states = offload}});
  return all;
}

// Rank 0 writes, all read.
void hand_over(const Optimizer& from, const TempFolder& folder) {
  StateSnapshot snapshot;
  from.save(snapshot);
  if (world().rank() == 0) snapshot.write(folder.path());
}

// The folder of rank 0 on every rank.
Path common(const TempFolder& folder) {
  std::string path = folder.path().string();
  world().broadcast(path, 0);
  return path;
}

TEST(SharedOptimizer, GivesTheBitsOfOneThatWorksAlone) {
  for (const Case& one : cases()) {
    Trained shared(one.config, one.specs, one.dtype, world()), alone(one.config, one.specs, one.dtype, Group::single());
    for (int step = 0; step < 4; ++step) {
      shared.run(step, step + 1);
      alone.run(step, step + 1);
      EXPECT_TRUE(same_bits(shared.parameters.flat_master(), alone.parameters.flat_master()));
      EXPECT_TRUE(same_bits(shared.parameters.flat(), alone.parameters.flat()));
    }
  }
}

// A share of more than the million elements that are gathered at a time.
TEST(SharedOptimizer, LargeSharesAreGatheredInPieces) {
  const std::vector<ParameterSpec> large = {{"w", {3400, 1000}, true, Init::normal}};
  Trained shared({}, large, at::kFloat, world()), alone({}, large, at::kFloat, Group::single());
  shared.run(0, 1);
  alone.run(0, 1);
  EXPECT_TRUE(same_bits(shared.parameters.flat_master(), alone.parameters.flat_master()));
}

TEST(SharedOptimizer, KeepsOnlyItsShareOfTheMoments) {
  Trained shared({}, kMany, at::kFloat, world());
  const int64_t size = shared.optimizer.first_moment().numel(), all = shared.parameters.flat().numel();
  EXPECT_LE(size, all / world().size() + 128);
  const Tensor sum = at::full({1}, size, at::kLong);
  world().all_reduce(sum, Reduce::sum);
  EXPECT_EQ(sum.item<int64_t>(), all);
  Trained whole({.name = OptimizerKind::adamw}, kMany, at::kFloat, world());
  EXPECT_EQ(whole.optimizer.first_moment().numel(), all);
}

TEST(SharedOptimizer, TheOtherKindsGiveTheSameOnEveryRank) {
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::sgd}) {
    Trained here({.name = kind}, kMany, at::kBFloat16, world()), alone({.name = kind}, kMany, at::kBFloat16, Group::single());
    here.run(0, 3);
    alone.run(0, 3);
    EXPECT_TRUE(same_bits(here.parameters.flat_master(), alone.parameters.flat_master()));
  }
}

// Saved on all ranks, gone on with on one alone; saved by one alone, gone on with on all.
TEST(SharedOptimizer, WhatIsSavedDoesNotDependOnTheNumberOfRanks) {
  for (const Case& one : cases()) {
    const TempFolder from_ranks, from_one;
    Trained shared(one.config, one.specs, one.dtype, world()), alone(one.config, one.specs, one.dtype, Group::single());
    shared.run(0, 3);
    alone.run(0, 3);
    hand_over(shared.optimizer, from_ranks);
    hand_over(alone.optimizer, from_one);
    const Path ranks_folder = common(from_ranks), one_folder = common(from_one);
    EXPECT_EQ(read_text(ranks_folder / "state.safetensors"), read_text(one_folder / "state.safetensors"));
    Optimizer now_alone(one.config, alone.parameters), now_shared(one.config, shared.parameters, world());
    now_alone.load(StateFiles(ranks_folder));
    now_shared.load(StateFiles(one_folder));
    EXPECT_EQ(now_alone.num_steps(), 3);
    const Tensor gradient = normals(alone.parameters.flat_gradient().sizes(), 9);
    for (Parameters* parameters : {&alone.parameters, &shared.parameters}) parameters->flat_gradient().copy_(gradient);
    now_alone.step(0.1);
    now_shared.step(0.1);
    EXPECT_TRUE(same_bits(alone.parameters.flat_master(), shared.parameters.flat_master()));
    Trained unbroken(one.config, one.specs, one.dtype, Group::single());
    unbroken.run(0, 3);
    unbroken.parameters.flat_gradient().copy_(gradient);
    unbroken.optimizer.step(0.1);
    EXPECT_TRUE(same_bits(alone.parameters.flat_master(), unbroken.parameters.flat_master()));
    world().barrier();  // nobody's folder goes before all have read it
  }
}

}  // namespace
}  // namespace kedge
