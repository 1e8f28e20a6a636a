// Training on ranks that hold the model together, on GPUs if there are any: whatever is sharded, the bits are those of ranks that each hold
// all of it.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kedge/core/device.h"
#include "kedge/dist/counting_transport.h"
#include "kedge/engine/engine.h"
#include "kedge/model/score_head.h"
#include "kedge/train/checkpoint/weights_hash.h"
#include "kedge/train/optim/learner.h"
#include "kedge/train/wire_plan.h"

#include "tests/support/generation.h"
#include "tests/support/ranks.h"
#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

using testing::world;

struct Case {
  const char* family = testing::kTinyLlama;
  HeadOptions head = {};
  at::ScalarType dtype = at::kFloat;
  bool lora = false, checkpoint = false;
  int group = 0;  // ranks that share a copy; 0: all
  Collectives collectives = Collectives::ordered;
};

ShardOptions shards_of(const Case& one, Sharding kind) {
  ShardOptions shards{.kind = kind, .shard = world(), .replicas = Group::single(), .collectives = one.collectives};
  if (one.group == 0) return shards;
  shards.shard = testing::mesh().groups_of(one.group);
  shards.replicas = testing::mesh().across_groups_of(one.group);
  return shards;
}

void add_lora(Model& model) {
  LoraConfig lora;
  lora.adapter_dim = 3;
  lora.target_modules = {"all"};
  model.add_adapters(lora, true);
  model.adapters()->initialise(7);
}

struct Outcome {
  std::vector<double> norms;
  std::string hash;
  Tensor logprobs;  // of some rows, at the end
};

Tensor loss_of(const Model& model, const PackedBatch& batch, const PassOptions& pass) {
  if (model.head().kind == HeadKind::language) return testing::token_loss(model, batch, pass);
  return token_scores(model, batch, pass).sum();
}

// Five updates. Ranks have different numbers of passes, some none, and a pass may have nothing to learn from.
Outcome train(const Case& one, Sharding kind) {
  const at::Device device = testing::mesh().device;
  if (device.is_cuda()) make_cuda_deterministic();
  const StorageOptions storage{.dtype = one.dtype, .device = device, .trainable = !one.lora, .shards = shards_of(one, kind)};
  Model model(testing::tiny_config(one.family), one.head, storage);
  model.initialise(5);
  if (one.lora) add_lora(model);
  Learner learner({.optim = {}, .update = {}, .horizon = 5, .counter = "updates"}, model.trained(), world());
  Outcome outcome;
  for (int64_t update = 0; update < 5; ++update) {
    learner.zero_gradients();
    const int64_t own = (world().rank() + update) % 3, all = learner.num_passes(own);
    for (int64_t pass = 0; pass < own; ++pass) {
      const PackedBatch batch = testing::batch_of({3 + update + pass, 5 + world().rank()}, device);
      PassOptions options;
      options.checkpoint = one.checkpoint;
      const bool learns = (update + pass + world().rank()) % 4 != 3;
      const Tensor loss = loss_of(model, batch, options);
      if (learns) backward(loss);
      model.complete_pass();
    }
    for (int64_t pass = own; pass < all; ++pass) model.complete_pass();
    outcome.norms.push_back(learner.update().grad_norm);
  }
  outcome.hash = weights_hash(model.trained());
  const NoGrad no_grad;
  const WholeWeights whole(model.parameters());
  if (one.head.kind == HeadKind::language) {
    const PackedBatch batch = testing::batch_of({7, 4}, device);
    outcome.logprobs = model_logprobs(model, batch, predicted_tokens(batch)).logprobs;
  } else {
    outcome.logprobs = token_scores(model, testing::batch_of({7, 4}, device));
  }
  return outcome;
}

void expect_same_bits(const Case& one) {
  const Outcome none = train(one, Sharding::none);
  EXPECT_GT(none.norms.back(), 0);
  for (const Sharding kind : {Sharding::optimizer, Sharding::gradients, Sharding::all}) {
    const Outcome other = train(one, kind);
    EXPECT_EQ(other.norms, none.norms) << one.family << " " << static_cast<int>(kind);
    EXPECT_EQ(other.hash, none.hash) << one.family << " " << static_cast<int>(kind);
    EXPECT_TRUE(testing::same_bits(other.logprobs, none.logprobs)) << one.family << " " << static_cast<int>(kind);
  }
}

TEST(Sharding, EveryFamilyHasTheSameBitsHoweverItIsSharded) {
  for (const char* family : {testing::kTinyLlama, testing::kTinyMistral, testing::kTinyQwen3, testing::kTinyGpt2})
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) expect_same_bits({.family = family, .dtype = dtype});
}

TEST(Sharding, ScoreModelsToo) { expect_same_bits({.head = {HeadKind::score, 2, true}}); }

TEST(Sharding, AdaptersOnAShardedBase) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) expect_same_bits({.dtype = dtype, .lora = true});
}

TEST(Sharding, WithRecomputation) { expect_same_bits({.checkpoint = true}); }

TEST(Sharding, GroupsOfRanksThatReplicate) {
  expect_same_bits({.group = 1});
  if (world().size() % 2 == 0) expect_same_bits({.group = 2});
}

// Without an order, sums may differ by roundings; on a CPU they do where passes are summed before ranks.
TEST(Sharding, FastSumsDifferByRoundingsOnly) {
  const Outcome ordered = train({}, Sharding::none), fast = train({.collectives = Collectives::fast}, Sharding::optimizer);
  for (size_t i = 0; i < ordered.norms.size(); ++i) EXPECT_NEAR(fast.norms[i], ordered.norms[i], 1e-5 * ordered.norms[i]);
}

// The bytes of an update with three passes and of all weights gathered once.
void expect_planned_bytes(const Case& one, Sharding kind) {
  const auto counting = std::make_shared<CountingTransport>(std::shared_ptr<Transport>(std::shared_ptr<void>(), &world().transport(false)));
  StorageOptions storage{.dtype = at::kBFloat16, .trainable = !one.lora, .shards = shards_of(one, kind)};
  storage.shards.shard = world().with_transport(nullptr, counting);
  Model model(testing::tiny_config(one.family), one.head, storage);
  model.initialise(5);
  if (one.lora) add_lora(model);
  Learner learner({.optim = {}, .update = {}, .horizon = 5, .counter = "updates"}, model.trained(), world());
  learner.zero_gradients();
  counting->reset_traffic();
  for (int64_t pass = 0; pass < 3; ++pass) {
    if ((pass + world().rank()) % 2 == 0) backward(testing::token_loss(model, testing::batch_of({3, 5})));
    model.complete_pass();
  }
  learner.update();
  const WholeWeights whole(model.parameters());
  const WireInput input{.network = model.places().specs,
                        .trained = model.trained().specs(),
                        .has_adapters = one.lora,
                        .element_bytes = 2,
                        .sharding = kind,
                        .collectives = one.collectives,
                        .shard_ranks = world().size(),
                        .num_ranks = world().size()};
  EXPECT_EQ(counting->traffic().bytes_sent, wire_bytes(input, {.passes = 3, .updates = 1, .wholes = 1}, world().rank()).in_group)
      << one.family << " " << static_cast<int>(kind);
}

TEST(Sharding, WhatIsSentIsWhatThePlanSays) {
  if (testing::mesh().device.is_cuda()) GTEST_SKIP() << "counted on the CPU";
  for (const Sharding kind : {Sharding::none, Sharding::optimizer, Sharding::gradients, Sharding::all})
    for (const Collectives collectives : {Collectives::ordered, Collectives::fast})
      for (const bool lora : {false, true})
        for (const char* family : {testing::kTinyLlama, testing::kTinyQwen3, testing::kTinyGpt2})
          expect_planned_bytes({.family = family, .lora = lora, .collectives = collectives}, kind);
}

// Between two phases of generation the weights are given back, and when they are gathered again they may be elsewhere: steps that a GPU
// recorded must not read where they were.
TEST(Sharding, GeneratesWithWeightsThatCameBack) {
  const auto texts = [](Sharding kind) {
    const StorageOptions storage{.device = testing::mesh().device, .trainable = true, .shards = shards_of({}, kind)};
    Model model(testing::tiny_config(testing::kTinyLlama), {}, storage);
    model.initialise(5);
    Engine engine(model, {.memory = "8MiB"});
    std::vector<std::vector<int32_t>> found;
    std::vector<Tensor> others;
    for (int phase = 0; phase < 3; ++phase) {
      const WholeWeights whole(model.parameters());
      found.push_back(engine.generate({testing::greedy_request({3, 4, 5}, 12)})[0][0].tokens);
      others.push_back(at::full({4096}, 7, at::TensorOptions(storage.device)));  // what may be where weights were
    }
    return found;
  };
  const auto wanted = texts(Sharding::none);
  EXPECT_EQ(wanted[1], wanted[0]);
  EXPECT_EQ(texts(Sharding::all), wanted);
}

TEST(Sharding, ARankHoldsItsShareOnly) {
  const auto bytes_of = [](Sharding kind) {
    const Parameters parameters(make_parameters(testing::tiny_config(testing::kTinyLlama), {}).specs,
                                {.dtype = at::kBFloat16, .trainable = true, .shards = shards_of({}, kind)});
    int64_t own = 0;
    for (const Parameters::OwnPart& part : parameters.own_parts()) own += length(part.range);
    return std::pair(own, parameters.size());
  };
  EXPECT_EQ(bytes_of(Sharding::none).first, bytes_of(Sharding::none).second);
  for (const Sharding kind : {Sharding::optimizer, Sharding::gradients, Sharding::all}) {
    std::array<double, 1> sum = {static_cast<double>(bytes_of(kind).first)};
    world().all_reduce(std::span<double>(sum), Reduce::sum);
    EXPECT_EQ(sum[0], static_cast<double>(bytes_of(kind).second));
  }
}

}  // namespace
}  // namespace kedge
