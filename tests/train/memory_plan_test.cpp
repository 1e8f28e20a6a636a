#include "kedge/train/memory_plan.h"

#include <gtest/gtest.h>

#include <sstream>

#include "kedge/model/model.h"

#include "tests/support/tiny_models.h"

namespace kedge {
namespace {

// Ten tokens in two rows through the tiny llama: 24 wide, qkv 48, gate and up 72, MLP 36, 4 heads of 6, 2 layers, 31 tokens.
MemoryInput tiny(at::ScalarType dtype = at::kFloat) {
  MemoryInput input;
  input.model = testing::tiny_config(testing::kTinyLlama);
  input.dtype = dtype;
  input.tokens = 10, input.rows = 2, input.longest = 6;
  return input;
}

MemoryPlan plan_with(auto&& change, at::ScalarType dtype = at::kFloat) {
  MemoryInput input = tiny(dtype);
  change(input);
  return plan_memory(input);
}

LoraConfig lora_of(int64_t rank) {
  LoraConfig lora;
  lora.adapter_dim = rank;
  lora.target_modules = {"all"};
  return lora;
}

// Parameters are padded to 128 elements: embedding and head 768 each, the last norm 128, and a layer's norms 128 each, qkv 1152, out 640,
// gate and up 1792, down 896: 11,136 together.
TEST(MemoryPlan, WhatStaysIsCountedFromTheShapes) {
  const MemoryPlan wide = plan_memory(tiny()), narrow = plan_memory(tiny(at::kBFloat16));
  EXPECT_EQ(wide.parameters, 11'136 * 4);
  EXPECT_EQ(wide.master_weights, 0);
  EXPECT_EQ(wide.gradients, 11'136 * 4);
  EXPECT_EQ(wide.optimizer, 11'136 * 8);
  EXPECT_EQ(wide.snapshot, 11'136 * 12);
  EXPECT_EQ(narrow.parameters, 11'136 * 2);
  EXPECT_EQ(narrow.master_weights, 11'136 * 4);
  EXPECT_EQ(narrow.snapshot, 11'136 * 12);
  EXPECT_EQ(wide.total(), 11'136 * 16 + wide.fixed);
  EXPECT_EQ(wide.peak(), wide.total() + wide.activations + wide.workspace);
}

TEST(MemoryPlan, TheBuffersAreThoseOfARealModel) {
  for (const char* family : {testing::kTinyLlama, testing::kTinyQwen3, testing::kTinyGpt2})
    for (const HeadOptions& head : {HeadOptions{}, HeadOptions{HeadKind::score, 2, true}})
      for (const bool adapted : {false, true}) {
        MemoryInput input = tiny(at::kBFloat16);
        input.model = testing::tiny_config(family), input.head = head;
        if (adapted) input.lora = lora_of(4);
        const auto model = testing::tiny_model(family, {.dtype = at::kBFloat16, .trainable = !adapted}, head);
        if (adapted) model->add_adapters(lora_of(4), true);
        const Parameters& trained = model->trained();
        const MemoryPlan plan = plan_memory(input);
        EXPECT_EQ(plan.parameters, static_cast<int64_t>(model->parameters().flat().nbytes() + (adapted ? trained.flat().nbytes() : 0)));
        EXPECT_EQ(plan.master_weights, static_cast<int64_t>(trained.flat_master().nbytes()));
        EXPECT_EQ(plan.gradients, static_cast<int64_t>(trained.flat_gradient().nbytes()));
      }
}

// fp32, a token: a layer keeps its input 24, qkv 48, attention's output 24, h 24, gate and up 72, two norms' statistics and 4 heads' sums:
// 198 numbers. Then the last output 24 with its statistic, the hidden states 24, angles 6, and four indices of 8 bytes.
TEST(MemoryPlan, ActivationsAreWhatTheLayersKeep) {
  EXPECT_EQ(plan_memory(tiny()).activations, 10 * (2 * 198 * 4 + (24 + 1 + 24 + 6) * 4 + 32));
  // With checkpointing a layer keeps its input alone.
  EXPECT_EQ(plan_with([](MemoryInput& input) { input.checkpoint = true; }).activations, 10 * (2 * 24 * 4 + (24 + 1 + 24 + 6) * 4 + 32));
  // bf16 halves everything but statistics, sums and angles.
  EXPECT_EQ(plan_memory(tiny(at::kBFloat16)).activations, 10 * (2 * (192 * 2 + 6 * 4) + (24 + 24) * 2 + (1 + 6) * 4 + 32));
}

// The worst moment is the MLP's backward in the last layer: the gradients of the gate's output (36), of gate and up (72), and the output
// once more (36), while the gradient of the hidden states stands in their place and that of the layer's output in that of its values,
// whose statistic is gone. A thread's attention has four matrices of 6 x 6.
TEST(MemoryPlan, TheWorkspaceIsThatOfTheWorstMoment) {
  EXPECT_EQ(plan_memory(tiny()).workspace, 10 * (36 + 72 + 36 - 1) * 4 + 4 * 6 * 6 * 4);
}

// Many more logits than anything else: eight predicted tokens a chunk wait for the backward (8 x 50,000 numbers), with the gradient of the
// hidden states, four numbers a prediction, and 8 x 24 numbers of the chunk's inputs and their gradient.
TEST(MemoryPlan, LogitsCountWhereTheyAreMany) {
  const MemoryPlan plan = plan_with([](MemoryInput& input) { input.model.vocab_size = 50'000; });
  EXPECT_EQ(plan.workspace, 8 * 50'000 * 4 + 10 * 24 * 4 + 8 * 16 + 2 * 8 * 24 * 4 + 4 * 6 * 6 * 4);
  // Beyond 128 MB none waits: chunks of 64 are computed again.
  const auto many = [](MemoryInput& input) { input.model.vocab_size = 50'000, input.tokens = 2000, input.rows = 1, input.longest = 2000; };
  EXPECT_LT(plan_with(many).workspace, (int64_t{128} << 20U) + 64 * 50'000 * 4 + (int64_t{4} << 20U));
  // Unless all of them are kept.
  const auto kept = [&](MemoryInput& input) { many(input), input.kept_logits = int64_t{1} << 30U; };
  EXPECT_GT(plan_with(kept).workspace, 1999 * 50'000 * 4);
}

TEST(MemoryPlan, ScoreModelsHaveNoLogits) {
  const auto large = [](MemoryInput& input) { input.model.vocab_size = 50'000; };
  const auto score = [&](MemoryInput& input) { large(input), input.head = {HeadKind::score, 1, false}; };
  EXPECT_LT(plan_with(score).workspace, plan_with(large).workspace / 10);
}

TEST(MemoryPlan, TwiceTheMicroBatchKeepsTwiceTheActivations) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const bool checkpoint : {false, true}) {
      const auto of = [&](int64_t times) {
        return plan_with([&](MemoryInput& input) { input.checkpoint = checkpoint, input.tokens *= times, input.rows *= times; }, dtype);
      };
      EXPECT_EQ(of(2).activations, 2 * of(1).activations);
      EXPECT_EQ(of(2).total(), of(1).total());
    }
}

TEST(MemoryPlan, CheckpointingAndNarrowNumbersTakeLess) {
  for (const bool cuda : {false, true}) {
    const auto of = [&](bool checkpoint, at::ScalarType dtype) {
      const auto large = [&](MemoryInput& input) {
        input.checkpoint = checkpoint, input.is_cuda = cuda, input.tokens = 4096, input.rows = 16, input.longest = 256;
        input.model.num_layers = 12, input.model.windows.assign(12, 0);
      };
      return plan_with(large, dtype);
    };
    EXPECT_LT(of(true, at::kFloat).peak(), of(false, at::kFloat).peak());
    EXPECT_LT(of(true, at::kBFloat16).peak(), of(false, at::kBFloat16).peak());
    EXPECT_LT(of(false, at::kBFloat16).activations, of(false, at::kFloat).activations);
    EXPECT_LT(of(true, at::kBFloat16).peak(), of(true, at::kFloat).peak());
  }
}

TEST(MemoryPlan, FamiliesKeepWhatTheirLayersHave) {
  const auto activations = [](const char* family) {
    return plan_with([&](MemoryInput& input) { input.model = testing::tiny_config(family); }).activations;
  };
  // Qwen3: 20 wide, 2 + 1 heads of 10, MLP 28: qkv (40) twice, with the norms' statistics by head.
  EXPECT_EQ(activations(testing::kTinyQwen3), 10 * (2 * (20 + 2 * 40 + 20 + 20 + 56 + 2 + 2 + 3) * 4 + (20 + 1 + 20 + 10) * 4 + 32));
  // GPT-2: 24 wide, 3 heads, MLP 96 without a gate, means beside the deviations, no angles.
  EXPECT_EQ(activations(testing::kTinyGpt2), 10 * (2 * (24 + 72 + 24 + 24 + 96 + 4 + 3) * 4 + (24 + 2 + 24) * 4 + 32));
}

TEST(MemoryPlan, OfAdaptersOnlyTheirOwnBuffersTrain) {
  const MemoryPlan plan = plan_with([](MemoryInput& input) { input.lora = lora_of(4); }, at::kBFloat16);
  EXPECT_LT(plan.gradients, 11'136 * 4);
  EXPECT_EQ(plan.optimizer, 2 * plan.gradients);
  EXPECT_EQ(plan.parameters, 11'136 * 2 + plan.gradients / 2);
  EXPECT_EQ(plan.snapshot, 3 * plan.gradients);
  // On a CPU a bf16 gradient of the head (6 bytes an element) would be computed apart; without it, the largest is the copy of the weight
  // (2) in the product that gives the gradient of the chunk's inputs.
  const auto large = [](MemoryInput& input) { input.model.vocab_size = 50'000; };
  const auto adapted = [&](MemoryInput& input) { large(input), input.lora = lora_of(4); };
  EXPECT_EQ(plan_with(large, at::kBFloat16).workspace - plan_with(adapted, at::kBFloat16).workspace, 50'000 * 24 * (6 - 2) - 2 * 8 * 24);
}

// Leaves of 2,048 elements are not cut. Each of the two layers' 4,480 elements are three of them, for three of four ranks; what is left of
// a layer, 384, the embedding, the head and what does not decay are with the last rank.
TEST(MemoryPlan, ARankCountsItsShare) {
  const auto of = [](Sharding kind) {
    return plan_with([&](MemoryInput& input) { input.num_ranks = input.shard_ranks = 4, input.sharding = kind; }, at::kBFloat16);
  };
  constexpr int64_t kAll = 11'136, kShare = 2 * 2048, kLayers = 2 * 4480;
  EXPECT_EQ(of(Sharding::none).optimizer, kAll * 8);
  EXPECT_EQ(of(Sharding::none).gradients, (kAll + kShare) * 4);
  EXPECT_EQ(of(Sharding::none).master_weights, kAll * 4);
  for (const Sharding kind : {Sharding::optimizer, Sharding::gradients, Sharding::all}) {
    EXPECT_EQ(of(kind).optimizer, kShare * 8);
    EXPECT_EQ(of(kind).master_weights, kShare * 4);
    EXPECT_EQ(of(kind).gradients, (kShare + (kind == Sharding::optimizer ? kAll : 0)) * 4);
    EXPECT_EQ(of(kind).parameters, (kind == Sharding::all ? kAll - kLayers + kShare : kAll) * 2);
    EXPECT_EQ(of(kind).gathered, kind == Sharding::all ? kLayers * 2 : 0);
  }
  EXPECT_EQ(of(Sharding::gradients).workspace - of(Sharding::optimizer).workspace, 3 * 4480 * 4);
  EXPECT_EQ(of(Sharding::all).workspace - of(Sharding::gradients).workspace, 2 * 4480 * 2);
}

// As many as the head computes by: no rank has more.
TEST(MemoryPlan, OfRanksThatSplitTheVocabularyTheLargestShareCounts) {
  MemoryInput input = tiny();
  input.tensor_ranks = 2;
  EXPECT_EQ(of_one_rank(input).model.vocab_size, 16);
}

// Of ten tokens a rank of two keeps five in the residual stream: the embedding's output, and of each layer two norms' statistics, the sum
// after attention and the output.
TEST(MemoryPlan, RanksThatDivideTokensKeepTheirOwn) {
  const MemoryPlan whole = plan_with([](MemoryInput&input) { input.tensor_ranks = 2; }),
                   divided = plan_with([](MemoryInput&input) { input.tensor_ranks = input.token_ranks = 2; });
  EXPECT_EQ(whole.activations - divided.activations, 5 * 4 * (24 + 2 * (2 + 2 * 24) + 1));
  EXPECT_LE(divided.workspace, whole.workspace + 10 * 4 * 24);
  EXPECT_LT(divided.peak(), whole.peak());
  EXPECT_EQ(divided.parameters, whole.parameters);
  const MemoryPlan recomputed = plan_with([](MemoryInput&input) { input.tensor_ranks = input.token_ranks = 2, input.checkpoint = true; }),
                   whole_recomputed = plan_with([](MemoryInput&input) { input.tensor_ranks = 2, input.checkpoint = true; });
  EXPECT_EQ(whole_recomputed.activations - recomputed.activations, 5 * 4 * (3 * 24 + 1));
  // More ranks than tokens: some have one, others none.
  EXPECT_GT(plan_with([](MemoryInput& input) { input.tensor_ranks = input.token_ranks = 2, input.tokens = 1, input.rows = 1; }).activations,
            0);
}

TEST(MemoryPlan, TheOptimizersSettingsCount) {
  const auto of = [](auto&& change) { return plan_with([&](MemoryInput& input) { change(input); }); };
  EXPECT_EQ(of([](MemoryInput& input) { input.optimizer.name = OptimizerKind::sgd; }).optimizer, 0);
  EXPECT_EQ(of([](MemoryInput& input) { input.optimizer.moments = MomentType::bf16; }).optimizer, 11'136 * 4);
  const MemoryPlan away = of([](MemoryInput& input) { input.is_cuda = true, input.optimizer.offload_adam_states = true; });
  EXPECT_EQ(away.optimizer, 0);
  EXPECT_EQ(away.host_optimizer, 2 * 65'536) << "each of the two, 44,544 bytes, takes a power of two";
  EXPECT_EQ(away.peak_of_tensors(), away.peak() - away.fixed - away.slack);
  EXPECT_EQ(away.slack, (away.activations + away.workspace) / 25);
}

TEST(MemoryPlan, IsShownInEightyColumnsAndAsJson) {
  const MemoryPlan plan =
      plan_with([](MemoryInput& input) { input.is_cuda = true, input.optimizer.offload_adam_states = true; }, at::kBFloat16);
  std::istringstream lines(plan.table());
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
    names.push_back(line.substr(2, line.find("  ", 2) - 2));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"parameters", "master weights", "gradients", "optimizer", "fixed", "between steps",
                                             "activations", "workspace", "slack", "peak", "snapshot"}));
  EXPECT_EQ(plan.json().find("peak")->as_integer("peak"), plan.peak());
  EXPECT_EQ(plan.json().find("snapshot")->as_integer("snapshot"), plan.snapshot);
}

}  // namespace
}  // namespace kedge
