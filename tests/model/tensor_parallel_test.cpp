// A model whose layers several ranks compute together, next to one that each rank computes alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kedge/engine/engine.h"
#include "kedge/model/score_head.h"
#include "kedge/train/checkpoint/weights_hash.h"
#include "kedge/train/optim/learner.h"

#include "tests/support/generation.h"
#include "tests/support/shared_rows.h"
#include "tests/support/split_models.h"

namespace kedge {
namespace {

using testing::add_lora;
using testing::part_of;
using testing::storage_of;
using testing::world;

// fp32 sums in another order: the largest number of a tensor is 2^23 times a rounding, and sums have tens of terms.
constexpr double kTolerance = 1e-5;

void expect_near(const Tensor& found, const Tensor& wanted, const std::string& what) {
  const double largest = wanted.abs().max().item<double>();
  EXPECT_LE(testing::largest_difference(found, wanted), kTolerance * std::max(largest, 1e-3)) << what;
}

struct Kind {
  const char* family;
  bool lora = false, checkpoint = false;
  double dropout = 0;
  HeadOptions head = {};
};

Tensor loss_of(const Model& model, const PackedBatch& batch, const PassOptions& pass) {
  if (model.head().kind == HeadKind::language) return testing::token_loss(model, batch, pass);
  return (token_scores(model, batch, pass) * testing::normals({batch.ids.size(0), model.head().num_labels}, 9).to(batch.ids.device()))
      .sum();
}

// Log-probabilities, and the gradient of every parameter.
void expect_same_numbers(const Kind& kind) {
  StorageOptions alone{.device = testing::mesh().device, .trainable = !kind.lora}, together = alone;
  together.tensor = testing::mesh_of(world().size()).tensor;
  const auto whole = testing::tiny_model(kind.family, alone, kind.head), split = testing::tiny_model(kind.family, together, kind.head);
  if (kind.lora) add_lora(*whole, kind.dropout), add_lora(*split, kind.dropout);
  const PackedBatch batch = testing::batch_of({7, 1, 12, 4}, alone.device);
  PassOptions pass;
  pass.checkpoint = kind.checkpoint;
  if (kind.dropout > 0) pass.dropout_seed = 11;
  const Tensor wanted = loss_of(*whole, batch, pass), found = loss_of(*split, batch, pass);
  EXPECT_NEAR(found.item<double>(), wanted.item<double>(), kTolerance * std::abs(wanted.item<double>())) << kind.family;
  backward(wanted), backward(found);
  whole->complete_pass(), split->complete_pass();
  whole->trained().finish_gradients(), split->trained().finish_gradients();
  for (int i = 0; i < std::ssize(whole->trained().specs()); ++i)
    expect_near(split->trained().gradient(i), part_of(whole->trained().gradient(i), split->trained().part(i)),
                std::string(kind.family) + whole->trained().specs()[static_cast<size_t>(i)].name);
}

TEST(TensorParallel, EveryFamilyHasTheNumbersOfOneRank) {
  for (const char* family : testing::kSplitFamilies) expect_same_numbers({.family = family});
}

TEST(TensorParallel, WithRecomputation) { expect_same_numbers({.family = testing::kTinyLlama, .checkpoint = true}); }

TEST(TensorParallel, ScoreModelsToo) {
  for (const char* family : testing::kSplitFamilies) expect_same_numbers({.family = family, .head = {HeadKind::score, 2, true}});
}

TEST(TensorParallel, AdaptersToo) {
  for (const char* family : testing::kSplitFamilies) {
    expect_same_numbers({.family = family, .lora = true});
    expect_same_numbers({.family = family, .lora = true, .dropout = 0.3});  // the same outputs are dropped
  }
}

// Sums that other streams may use at the same time are not for gradients, which are summed while the next layer's are computed.
class SumsOfActivations final : public PeerSums {
 public:
  void sum_(const Tensor& row, int /*first*/, int count) override {
    ++num_sums;
    for (const void* gradient : gradients) EXPECT_NE(row.storage().data(), gradient);
    TensorRanks(world()).sum_(row, count);
  }
  [[nodiscard]] bool should_sum(const Tensor& /*row*/) const override { return true; }

  std::vector<const void*> gradients;
  int num_sums = 0;
};

TEST(TensorParallel, GradientsOfSharedHeadsAreNotSummedNextToActivations) {
  const auto sums = std::make_shared<SumsOfActivations>();
  StorageOptions together{.device = testing::mesh().device, .trainable = true};
  together.tensor = TensorRanks(world(), sums);
  const auto model = testing::tiny_model(testing::kQwen3Split, together);
  Parameters& trained = model->trained();
  for (int i = 0; i < std::ssize(trained.specs()); ++i) sums->gradients.push_back(trained.gradient(i).storage().data());
  backward(loss_of(*model, testing::batch_of({7, 4}, together.device), {}));
  model->complete_pass();
  trained.finish_gradients();
  EXPECT_GT(sums->num_sums, 0);
}

// Prompts that are computed once for their answers, next to rows that each have their own copy.
TEST(TensorParallel, SharedPromptsToo) {
  const at::Device device = testing::mesh().device;
  const testing::SharedRows rows = testing::shared_rows({{9, {4, 2, 7}}, {3, {5}}, {6, {1, 8}}}, 31, device);
  const Tensor weights = testing::normals({rows.apart_predicted.targets.size(0)}, 9).to(device);
  for (const char* family : testing::kSplitFamilies)
    for (const bool divides_tokens : {false, true}) {
      StorageOptions together{.device = device, .trainable = true};
      together.tensor = testing::mesh_of(world().size()).tensor;
      together.divides_tokens = divides_tokens;
      const auto model = testing::tiny_model(family, together);
      Parameters& trained = model->trained();
      const auto logprobs_of = [&](const PackedBatch& batch, const PredictedTokens& predicted) {
        trained.zero_gradients();
        const Tensor logprobs = model_logprobs(*model, batch, predicted).logprobs;
        backward((logprobs * weights).sum());
        model->complete_pass();
        trained.finish_gradients();
        return logprobs.detach();
      };
      const Tensor wanted = logprobs_of(rows.apart, rows.apart_predicted);
      std::vector<Tensor> gradients;
      for (int i = 0; i < std::ssize(trained.specs()); ++i) gradients.push_back(trained.gradient(i).clone());
      const Tensor found = logprobs_of(rows.shared, rows.shared_predicted);
      EXPECT_TRUE(!device.is_cpu() || at::equal(found, wanted)) << family;
      expect_near(found, wanted, family);
      for (int i = 0; i < std::ssize(trained.specs()); ++i)
        expect_near(trained.gradient(i), gradients[static_cast<size_t>(i)], family + trained.specs()[static_cast<size_t>(i)].name);
    }
}

TEST(TensorParallel, LogprobsAtATemperatureAndTheirEntropy) {
  const NoGrad no_grad;
  StorageOptions together{.device = testing::mesh().device};
  together.tensor = testing::mesh_of(world().size()).tensor;
  const auto whole = testing::tiny_model(testing::kTinyLlama, {.device = together.device}),
             split = testing::tiny_model(testing::kTinyLlama, together);
  const PackedBatch batch = testing::batch_of({7, 12}, together.device);
  for (const double temperature : {0.6, 1.0, 1.5}) {
    const LogprobOptions options{.entropy = true, .temperature = temperature};
    const TokenLogprobs wanted = model_logprobs(*whole, batch, predicted_tokens(batch), options),
                        found = model_logprobs(*split, batch, predicted_tokens(batch), options);
    expect_near(found.logprobs, wanted.logprobs, "log-probabilities");
    expect_near(found.entropy, wanted.entropy, "entropy");
  }
}

// The last rank has one id more than the others, whose logits of as many places would take less memory than the limit on a CPU.
TEST(TensorParallel, RanksWithUnequalSharesOfTheVocabularyTakeEqualChunks) {
  const NoGrad no_grad;
  const char* family = R"({"model_type": "llama", "vocab_size": 32769, "hidden_size": 24, "intermediate_size": 36,
    "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64})";
  StorageOptions together{.device = testing::mesh().device};
  together.tensor = testing::mesh_of(world().size()).tensor;
  const auto whole = testing::tiny_model(family, {.device = together.device}), split = testing::tiny_model(family, together);
  const PackedBatch batch = testing::batch_of({60, 60, 60, 60}, together.device);
  expect_near(model_logprobs(*split, batch, predicted_tokens(batch)).logprobs,
              model_logprobs(*whole, batch, predicted_tokens(batch)).logprobs, "log-probabilities");
}

// The same text as one rank writes, and on the CPU log-probabilities with the bits of training.
TEST(TensorParallel, GeneratesTheSameText) {
  for (const char* family : testing::kSplitFamilies) {
    StorageOptions together{.device = testing::mesh().device};
    together.tensor = testing::mesh_of(world().size()).tensor;
    const auto whole = testing::tiny_model(family, {.device = together.device}), split = testing::tiny_model(family, together);
    std::vector<std::vector<Completion>> of_both[2];
    for (const bool is_split : {false, true}) {
      Engine engine(is_split ? *split : *whole, {.memory = "8MiB"});
      std::vector<GenerateRequest> requests;
      for (const auto& prompt : testing::prompts_of({3, 9, 5})) requests.push_back(testing::greedy_request(prompt, 14));
      requests.back().sampling.use_greedy = false;
      requests.back().logprob_temperature = requests.back().sampling.temperature = 1.5;
      requests.back().num_samples = 3;
      of_both[is_split ? 1 : 0] = engine.generate(std::move(requests));
    }
    for (size_t i = 0; i < of_both[0].size(); ++i)
      for (size_t sample = 0; sample < of_both[0][i].size(); ++sample)
        EXPECT_EQ(of_both[1][i][sample].tokens, of_both[0][i][sample].tokens) << family;
    const NoGrad no_grad;
    const auto prompts = testing::prompts_of({3, 9, 5});
    for (size_t i = 0; i < prompts.size(); ++i)
      for (const Completion& completion : of_both[1][i]) {
        std::vector<int32_t> row = prompts[i];
        row.insert(row.end(), completion.tokens.begin(), completion.tokens.end());
        const PackedBatch batch = pack_rows({&row, 1}, together.device);
        const Tensor logprobs = model_logprobs(*split, batch, predicted_tokens(batch), {.temperature = i == 2 ? 1.5 : 1.0})
                                    .logprobs.narrow(0, std::ssize(prompts[i]) - 1, std::ssize(completion.tokens))
                                    .cpu();
        for (size_t j = 0; j < completion.tokens.size(); ++j)
          EXPECT_NEAR(logprobs[static_cast<int64_t>(j)].item<float>(), completion.logprobs[j], together.device.is_cpu() ? 0.0F : 1e-4F)
              << family;
      }
  }
}

struct Outcome {
  std::vector<double> norms;
  Tensor weights;  // of the complete model, one after the other
  std::string hash;
};

// Five updates: each data rank has its own rows.
Outcome train(const Kind& kind, int tensor_ranks, Sharding sharding) {
  if (testing::mesh().device.is_cuda()) make_cuda_deterministic();  // or no two runs have the same bits
  const StorageOptions storage = storage_of(tensor_ranks, sharding, !kind.lora);
  const auto model = testing::tiny_model(kind.family, storage, kind.head);
  if (kind.lora) add_lora(*model);
  Learner learner({.optim = {}, .update = {}, .horizon = 5, .counter = "updates"}, model->trained(), storage.shards.shard);
  const int data_ranks = storage.shards.shard.size();
  Outcome outcome;
  for (int64_t update = 0; update < 5; ++update) {
    learner.zero_gradients();
    // Eight rows in all, whoever has them.
    for (int64_t row = storage.shards.shard.rank(); row < 8; row += data_ranks) {
      backward(loss_of(*model, testing::batch_of({3 + row, 4 + update}, storage.device), {}));
      model->complete_pass();
    }
    outcome.norms.push_back(learner.update().grad_norm);
  }
  std::vector<Tensor> masters(model->trained().whole_specs().size());
  model->trained().visit_masters([&](int i, const Tensor& master) { masters[static_cast<size_t>(i)] = master.clone().view({-1}); });
  outcome.weights = at::cat(masters).cpu();
  outcome.hash = weights_hash(model->trained());
  return outcome;
}

TEST(TensorParallel, TrainsLikeOneRankPerCopy) {
  for (const char* family : testing::kSplitFamilies)
    for (const bool lora : {false, true}) {
      const Kind kind{.family = family, .lora = lora};
      const Outcome wanted = train(kind, 1, Sharding::none);
      for (int tensor_ranks = 2; tensor_ranks <= world().size(); tensor_ranks *= 2) {
        const Outcome found = train(kind, tensor_ranks, Sharding::none);
        for (size_t i = 0; i < wanted.norms.size(); ++i)
          EXPECT_NEAR(found.norms[i], wanted.norms[i], kTolerance * wanted.norms[i]) << family << i;
        // AdamW divides by the gradient's size: where that is near zero, a rounding can change the sign of a step of 9e-6.
        EXPECT_LE(testing::largest_difference(found.weights, wanted.weights), 5 * 2 * 9e-6) << family;
        EXPECT_LE((found.weights - wanted.weights).abs().mean().item<double>(), 1e-6) << family;
      }
    }
}

// Two tensor ranks times two that share the optimizer, the gradients or all.
TEST(TensorParallel, ShardedCopiesHaveTheSameBits) {
  if (world().size() != 4) GTEST_SKIP() << "needs four ranks";
  for (const char* family : testing::kSplitFamilies) {
    const Outcome none = train({.family = family}, 2, Sharding::none);
    for (const Sharding kind : {Sharding::optimizer, Sharding::gradients, Sharding::all}) {
      const Outcome other = train({.family = family}, 2, kind);
      EXPECT_EQ(other.norms, none.norms) << family;
      EXPECT_EQ(other.hash, none.hash) << family;
    }
  }
}

// The hash is that of the complete model's weights, however ranks hold them.
TEST(TensorParallel, WeightsHaveOneHash) {
  for (const char* family : testing::kSplitFamilies) {
    const auto whole = testing::tiny_model(family, {.device = testing::mesh().device, .trainable = true});
    for (int tensor_ranks = 2; tensor_ranks <= world().size(); tensor_ranks *= 2)
      for (const Sharding kind : {Sharding::none, Sharding::optimizer, Sharding::all}) {
        const auto split = testing::tiny_model(family, storage_of(tensor_ranks, kind));
        EXPECT_EQ(weights_hash(split->trained()), weights_hash(whole->trained())) << family << tensor_ranks;
      }
  }
}

TEST(TensorParallel, MergedAdaptersGiveTheSameNumbers) {
  const NoGrad no_grad;
  for (const char* family : testing::kSplitFamilies) {
    StorageOptions together{.device = testing::mesh().device};
    together.tensor = testing::mesh_of(world().size()).tensor;
    const auto split = testing::tiny_model(family, together);
    add_lora(*split);
    const PackedBatch batch = testing::batch_of({7, 12}, together.device);
    const Tensor apart = model_logprobs(*split, batch, predicted_tokens(batch)).logprobs;
    split->merge_adapters();
    expect_near(model_logprobs(*split, batch, predicted_tokens(batch)).logprobs, apart, family);
  }
}

}  // namespace
}  // namespace kedge
