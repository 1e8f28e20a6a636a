// Ranks that divide the tokens of a pass between the products of a layer, next to the same ranks that do not.
#include "kedge/model/token_slices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kedge/dist/counting_transport.h"
#include "kedge/model/score_head.h"
#include "kedge/train/checkpoint/weights_hash.h"
#include "kedge/train/optim/learner.h"
#include "kedge/train/wire_plan.h"

#include "tests/support/split_models.h"

namespace kedge {
namespace {

using testing::normals;
using testing::storage_of;
using testing::world;

TEST(TokenSlices, RowsOfAllTokensAndOwnOnes) {
  const TensorRanks ranks(world());
  for (const int64_t num_tokens : {1, 2, 5, 9}) {
    const TokenSlices whole{&ranks}, divided{&ranks, true, num_tokens};
    const Tensor mine = normals({num_tokens, 6}, static_cast<uint64_t>(testing::rank())), sum = whole.sum(mine.clone());
    EXPECT_TRUE(at::equal(whole.own(sum), sum));
    EXPECT_TRUE(at::equal(whole.all(sum), sum));
    EXPECT_TRUE(at::equal(divided.sum(mine), divided.own(sum)));
    EXPECT_TRUE(at::equal(divided.all(divided.own(sum)), sum));
    const Share share = share_of(num_tokens, testing::rank(), testing::size());
    EXPECT_EQ(divided.own(sum).size(0), share.end - share.begin);
  }
}

TEST(TokenSlices, OneRankHasAllTokens) {
  const TokenSlices alone;
  const Tensor x = normals({3, 2}, 1);
  EXPECT_FALSE(alone.is_split());
  for (const Tensor& same : {alone.sum(x), alone.all(x), alone.own(x)}) EXPECT_TRUE(at::equal(same, x));
}

struct SliceCase {
  const char* family;
  bool lora = false, checkpoint = false;
  double dropout = 0;
  HeadOptions head = {};
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> lengths = {7, 1, 12, 4};
};

Tensor slice_loss(const Model& model, const PackedBatch& batch, const PassOptions& pass) {
  if (model.head().kind == HeadKind::language) return testing::token_loss(model, batch, pass);
  return (token_scores(model, batch, pass) * normals({batch.ids.size(0), model.head().num_labels}, 9).to(model.device())).sum();
}

std::unique_ptr<Model> slice_model(const SliceCase& one, bool divides_tokens) {
  StorageOptions storage{.dtype = one.dtype, .device = testing::mesh().device, .trainable = !one.lora};
  storage.tensor = TensorRanks(world());
  storage.divides_tokens = divides_tokens;
  auto model = testing::tiny_model(one.family, storage, one.head);
  if (one.lora) testing::add_lora(*model, one.dropout);
  return model;
}

// The hidden states, the loss and all gradients have the same bits, except gradients of norms, which are within 1e-5 of the largest of
// each: they are sums over tokens in another order.
void expect_same_pass(const SliceCase& one) {
  const auto whole = slice_model(one, false), divided = slice_model(one, true);
  const PackedBatch batch = testing::batch_of(one.lengths, whole->device());
  PassOptions pass;
  pass.checkpoint = one.checkpoint;
  if (one.dropout > 0) pass.dropout_seed = 11;
  EXPECT_TRUE(at::equal(divided->hidden(batch, pass), whole->hidden(batch, pass))) << one.family;
  const Tensor wanted = slice_loss(*whole, batch, pass), found = slice_loss(*divided, batch, pass);
  EXPECT_EQ(found.item<double>(), wanted.item<double>()) << one.family;
  backward(wanted), backward(found);
  for (Model* model : {whole.get(), divided.get()}) model->complete_pass(), model->trained().finish_gradients();
  for (int i = 0; i < std::ssize(whole->trained().specs()); ++i) {
    const Tensor &theirs = whole->trained().gradient(i), &own = divided->trained().gradient(i);
    const std::string& name = whole->trained().specs()[static_cast<size_t>(i)].name;
    const bool is_norm = divided->trained().part(i).has_summands && !whole->trained().part(i).has_summands;
    EXPECT_EQ(is_norm, !one.lora && name.find("norm") != std::string::npos && name.find("_norm") == std::string::npos) << name;
    if (!is_norm) {
      EXPECT_TRUE(at::equal(own, theirs)) << one.family << name;
      continue;
    }
    EXPECT_LE(testing::largest_difference(own, theirs), 1e-5 * std::max(theirs.abs().max().item<double>(), 1e-3)) << one.family << name;
  }
}

TEST(TokenSlices, EveryFamilyHasTheSameBits) {
  for (const char* family : testing::kSplitFamilies) expect_same_pass({.family = family});
}

TEST(TokenSlices, WithRecomputation) {
  for (const char* family : testing::kSplitFamilies) expect_same_pass({.family = family, .checkpoint = true});
}

TEST(TokenSlices, ScoreModelsToo) {
  for (const char* family : testing::kSplitFamilies) expect_same_pass({.family = family, .head = {HeadKind::score, 2, true}});
}

TEST(TokenSlices, AdaptersToo) {
  for (const char* family : testing::kSplitFamilies)
    for (const bool checkpoint : {false, true})
      for (const double dropout : {0.0, 0.3})
        expect_same_pass({.family = family, .lora = true, .checkpoint = checkpoint, .dropout = dropout});
}

// bf16 is summed in fp32 and rounded once, for some tokens as for all.
TEST(TokenSlices, NarrowNumbersToo) {
  for (const char* family : testing::kSplitFamilies)
    for (const bool lora : {false, true}) expect_same_pass({.family = family, .lora = lora, .dtype = at::kBFloat16});
}

// A rank without tokens still computes its heads for those of the others.
TEST(TokenSlices, FewerTokensThanRanks) {
  for (const char* family : testing::kSplitFamilies)
    for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{1}, {2}, {1, 2}}) {
      expect_same_pass({.family = family, .head = {HeadKind::score, 2, true}, .lengths = lengths});
      if (lengths.back() > 1) expect_same_pass({.family = family, .lengths = lengths});
    }
}

// Only the own tokens' input, sum after attention and statistics wait for the backward.
TEST(TokenSlices, ALayerKeepsItsOwnTokens) {
  const NoGrad no_grad;
  const auto model = slice_model({.family = testing::kGpt2Split}, true);
  const PackedBatch batch = testing::batch_of({7, 4}, model->device());
  const TensorRanks& ranks = model->parameters().options().tensor;
  const PassContext pass{batch, nullptr, {}, {&ranks, true, 11}};
  LayerState state;
  const Tensor x = pass.tokens.own(normals({11, 24}, 3).to(model->device()));
  const Tensor y = layer_forward(model->decoder().layer(0), pass, x, &state);
  for (const Tensor& kept : {y, state.x, state.h, state.norm1.rstd, state.norm1.mean, state.norm2.rstd, state.norm2.mean})
    EXPECT_EQ(kept.size(0), x.size(0));
  EXPECT_EQ(state.qkv.size(0), 11);
}

struct SliceRun {
  std::vector<double> norms;
  std::string hash;
  Tensor weights;
};

// Three updates of pairs of ranks, each pair with its own rows.
SliceRun train_slices(const char* family, bool divides_tokens, Sharding sharding) {
  StorageOptions storage = storage_of(2, sharding);
  storage.divides_tokens = divides_tokens;
  const auto model = testing::tiny_model(family, storage);
  Learner learner({.optim = {}, .update = {}, .horizon = 5, .counter = "updates"}, model->trained(), storage.shards.shard);
  SliceRun run;
  for (int64_t update = 0; update < 3; ++update) {
    learner.zero_gradients();
    for (int64_t row = storage.shards.shard.rank(); row < 4; row += storage.shards.shard.size()) {
      backward(testing::token_loss(*model, testing::batch_of({3 + row, 4 + update}, storage.device)));
      model->complete_pass();
    }
    run.norms.push_back(learner.update().grad_norm);
  }
  run.hash = weights_hash(model->trained());
  std::vector<Tensor> masters(model->trained().whole_specs().size());
  model->trained().visit_masters([&](int i, const Tensor& master) { masters[static_cast<size_t>(i)] = master.clone().view({-1}); });
  run.weights = at::cat(masters).cpu();
  return run;
}

TEST(TokenSlices, TrainAsRanksWithAllTokensDoWhateverIsSharded) {
  for (const char* family : testing::kSplitFamilies) {
    const SliceRun whole = train_slices(family, false, Sharding::none), divided = train_slices(family, true, Sharding::none);
    for (size_t i = 0; i < whole.norms.size(); ++i) EXPECT_NEAR(divided.norms[i], whole.norms[i], 1e-6 * whole.norms[i]) << family;
    // AdamW divides by the gradient's size: where that is near zero, a rounding can change the sign of a step of 9e-6.
    EXPECT_LE(testing::largest_difference(divided.weights, whole.weights), 3 * 2 * 9e-6) << family;
    if (world().size() == 2) continue;
    for (const Sharding kind : {Sharding::optimizer, Sharding::gradients, Sharding::all}) {
      const SliceRun other = train_slices(family, true, kind);
      EXPECT_EQ(other.norms, divided.norms) << family;
      EXPECT_EQ(other.hash, divided.hash) << family;
    }
  }
}

// What a pass sends more than one of ranks that have all tokens, and the norms' gradients in each update.
TEST(TokenSlices, WhatIsSentIsWhatThePlanSays) {
  if (testing::mesh().device.is_cuda() || world().size() != 2)
    GTEST_SKIP() << "counted on the CPU, with two ranks: more send small rows at once";
  const auto sent = [](bool divides_tokens, bool checkpoint) {
    const auto counting =
        std::make_shared<CountingTransport>(std::shared_ptr<Transport>(std::shared_ptr<void>(), &world().transport(false)));
    StorageOptions storage{.trainable = true};
    storage.tensor = TensorRanks(world().with_transport(nullptr, counting));
    storage.divides_tokens = divides_tokens;
    const auto model = testing::tiny_model(testing::kTinyLlama, storage);
    counting->reset_traffic();
    PassOptions pass;
    pass.checkpoint = checkpoint;
    backward(testing::token_loss(*model, testing::batch_of({8, 12}), pass));
    model->complete_pass();
    model->trained().finish_gradients();
    return counting->traffic().bytes_sent;
  };
  for (const bool checkpoint : {false, true}) {
    TensorWireInput plan{.tensor_ranks = 2, .layers = 2, .hidden = 24, .vocabulary = 31, .recomputes = checkpoint};
    const int64_t whole = tensor_wire_bytes(plan, {.trained = 20});
    plan.divides_tokens = true;
    const int64_t divided = tensor_wire_bytes(plan, {.trained = 20}), norms = 5 * 128 * 4;  // with the gaps after them
    EXPECT_EQ(sent(true, checkpoint) - sent(false, checkpoint), divided - whole + norms);
    EXPECT_EQ(sent(false, checkpoint) - whole, 18 * 3 * 8);  // three numbers for every predicted token
  }
}

}  // namespace
}  // namespace kedge
