#include "kedge/algo/online/policy.h"

#include <gtest/gtest.h>

#include <limits>

#include "kedge/algo/online/policy_losses.h"
#include "kedge/core/autograd.h"
#include "kedge/train/checkpoint/weights_hash.h"

#include "tests/support/largest_allocation.h"
#include "tests/support/model_logits.h"
#include "tests/support/tiny_training.h"

namespace kedge {
namespace {

using testing::byte_model;
using testing::model_logits;
using testing::same_bits;
using testing::TempFolder;

RolloutRow answer(TokenIds ids, int64_t prompt_length, double advantage, bool trains = true) {
  RolloutRow row;
  row.rollout = std::make_shared<const Rollout>(Rollout{.ids = std::move(ids), .prompt_length = prompt_length});
  row.advantage = advantage;
  row.trains = trains;
  return row;
}

// Four answers of 3, 1, 4 and 2 tokens; the third is not trained on.
RolloutRows four_answers() {
  return {answer({5, 6, 7, 8, 9}, 2, 1.5), answer({10, 11, 12}, 2, -0.5), answer({1, 2, 3, 4, 5}, 1, 9, false),
          answer({20, 21, 22}, 1, 0.25)};
}

PolicyOptions options(std::optional<ReferenceKind> reference = ReferenceKind::resident) {
  PolicyOptions options;
  options.optim.name = OptimizerKind::sgd;
  options.optim.lr = 0.5;
  options.optim.weight_decay = 0;
  options.optim.sched = {.name = ScheduleKind::constant, .warmup_steps = 0};
  options.update.gradient_clip_val = std::nullopt;
  options.num_updates = 10;
  options.reference = reference;
  return options;
}

Minibatch minibatch_of(std::vector<Pass> passes) {
  Minibatch minibatch;
  for (const Pass& pass : passes) minibatch.rows.insert(minibatch.rows.end(), pass.rows.begin(), pass.rows.end());
  minibatch.passes = std::move(passes);
  return minibatch;
}

PassLoss reinforce(const PassTokens& tokens) { return reinforce_terms(tokens.logprobs, tokens.advantages); }

// Column t of a row's log-probabilities belongs to token t + 1: the answer's are those from the prompt's last place on.
TEST(Policy, LogprobsAreThoseOfTheAnswersTokens) {
  const auto model = byte_model();
  Policy policy(*model, Group::single(), options());
  RolloutRows rows = four_answers();
  policy.logprobs(std::vector<Pass>{{{0, 1}}, {{3}}}, rows);
  EXPECT_TRUE(rows[2].logprobs.empty()) << "in no pass";
  for (const size_t i : {0U, 1U, 3U}) {
    const NoGrad no_grad;
    const Rollout& rollout = *rows[i].rollout;
    const std::vector<TokenIds> alone = {rollout.ids};
    const PackedBatch batch = pack_rows(alone, at::kCPU);
    const Tensor logits = model_logits(*model, batch).log_softmax(-1);
    ASSERT_EQ(rows[i].logprobs.size(), static_cast<size_t>(rollout.response_length()));
    double entropy = 0;
    for (int64_t t = 0; t < rollout.response_length(); ++t) {
      const Tensor row = logits[rollout.prompt_length - 1 + t];
      const auto target = rollout.ids[static_cast<size_t>(rollout.prompt_length + t)];
      EXPECT_NEAR(rows[i].logprobs[static_cast<size_t>(t)], row[target].item<float>(), 1e-5);  // fp32 sums of 259 terms
      entropy -= (row.exp() * row).sum().item<double>() / static_cast<double>(rollout.response_length());
    }
    EXPECT_NEAR(rows[i].entropy.value(), entropy, 1e-5);
  }
}

TEST(Policy, EqualWeightsHaveNoKlAtAll) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const auto model = byte_model({}, {.dtype = dtype, .trainable = true});
    Policy policy(*model, Group::single(), options());
    RolloutRows rows = four_answers();
    const std::vector<Pass> passes = {{{2, 0, 1, 3}}};
    policy.logprobs(passes, rows);
    policy.reference_logprobs(passes, rows);
    for (const RolloutRow& row : rows) EXPECT_EQ(row.logprobs, row.reference);
  }
}

// Before the first update the ratio is 1, bit for bit: fp32 and bf16, all weights and adapters.
TEST(Policy, TrainingSeesTheVeryLogprobsThatWereComputedBefore) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const bool adapted : {false, true}) {
      const auto model = byte_model({}, {.dtype = dtype, .trainable = !adapted});
      if (adapted) {
        model->add_adapters({}, true);
        model->adapters()->initialise(3);
      }
      Policy policy(*model, Group::single(), options(std::nullopt));
      RolloutRows rows = four_answers();
      const Minibatch minibatch = minibatch_of({{{3, 1}}, {{0, 2}}});
      policy.logprobs(minibatch.passes, rows);
      int passes = 0;
      static_cast<void>(policy.update({minibatch, std::vector<double>(4, 0.1),
                                       [&](const PassTokens& tokens) {
                                         EXPECT_TRUE(same_bits(tokens.logprobs.detach(), tokens.previous));
                                         ++passes;
                                         return clipped_terms(tokens.logprobs, tokens.previous, tokens.advantages, 0.2).losses;
                                       }},
                                      rows));
      EXPECT_EQ(passes, 2);
    }
}

// Four prompts: the second has a single answer, the third a single token, and an answer to the fourth is empty.
RolloutRows shared_answers() {
  RolloutRows rows;
  const auto add = [&](int64_t slot, TokenIds prompt, const TokenIds& response) {
    const auto length = std::ssize(prompt);
    prompt.insert(prompt.end(), response.begin(), response.end());
    rows.push_back(answer(std::move(prompt), length, 0.5 - 0.3 * static_cast<double>(rows.size() % 4)));
    rows.back().slot = slot;
  };
  for (const TokenIds& response : {TokenIds{8, 9, 10}, {8}, {30, 31, 32, 33, 34}, {40, 41}})
    add(0, {5, 6, 7, 100, 101, 102, 103}, response);
  add(1, {50, 51}, {52, 53});
  for (const TokenIds& response : {TokenIds{60, 61}, {62}}) add(2, {70}, response);
  for (const TokenIds& response : {TokenIds{}, {63, 64}, {65}}) add(3, {71, 72, 73}, response);
  return rows;
}

Minibatch all_of(const RolloutRows& rows, bool shares, int64_t tokens_per_pass) {
  std::vector<int64_t> order, lengths;
  for (const RolloutRow& row : rows) order.push_back(std::ssize(order)), lengths.push_back(row.rollout->length());
  RowGroups groups = prompt_groups(rows, shares);
  groups.may_divide = true;
  return plan_minibatches(order, lengths, {.global_size = std::ssize(rows), .tokens_per_pass = tokens_per_pass}, 0, 1, groups)[0];
}

// Bit for bit, in any passes; gradients but for the order of sums.
TEST(Policy, SharingPromptsChangesNoLogprob) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const bool adapted : {false, true}) {
      std::vector<RolloutRows> seen;
      std::vector<Tensor> gradients;
      for (const auto& [shares, tokens] : {std::pair(false, 1000), std::pair(true, 1000), std::pair(true, 12)}) {
        const auto model = byte_model({}, {.dtype = dtype, .trainable = !adapted});
        if (adapted) {
          model->add_adapters({}, true);
          model->adapters()->initialise(3);
        }
        PolicyOptions at_rate = options(adapted ? ReferenceKind::adapters_off : ReferenceKind::resident);
        Policy policy(*model, Group::single(), at_rate);
        RolloutRows rows = shared_answers();
        const Tensor before = model->trained().flat_master().detach().clone();
        const Minibatch minibatch = all_of(rows, shares, tokens);
        policy.logprobs(minibatch.passes, rows);
        policy.reference_logprobs(minibatch.passes, rows);
        static_cast<void>(policy.update({minibatch, std::vector<double>(rows.size(), 0.1),
                                         [&](const PassTokens& tokens_of) {
                                           EXPECT_TRUE(same_bits(tokens_of.logprobs.detach(), tokens_of.previous));
                                           return clipped_terms(tokens_of.logprobs, tokens_of.previous, tokens_of.advantages, 0.2).losses;
                                         }},
                                        rows));
        gradients.push_back(model->trained().flat_master().detach() - before);
        seen.push_back(std::move(rows));
      }
      for (size_t i = 1; i < seen.size(); ++i) {
        for (size_t row = 0; row < seen[0].size(); ++row) {
          EXPECT_EQ(seen[i][row].logprobs, seen[0][row].logprobs);
          EXPECT_EQ(seen[i][row].reference, seen[0][row].reference);
          EXPECT_EQ(seen[i][row].entropy, seen[0][row].entropy);
        }
        EXPECT_GT(gradients[0].norm().item<double>(), 0);
        EXPECT_LT((gradients[i] - gradients[0]).norm().item<double>() / gradients[0].norm().item<double>(),
                  dtype == at::kFloat ? 1e-5 : 0.02);  // bf16 rounds the sum over answers once, or each of its terms
      }
    }
}

TEST(Policy, APassOfEmptyAnswersIsAPass) {
  const auto model = byte_model();
  Policy policy(*model, Group::single(), options(std::nullopt));
  RolloutRows rows = {answer({5, 6}, 2, 0), answer({5, 6}, 2, 0)};
  policy.logprobs(all_of(rows, true, 100).passes, rows);
  EXPECT_TRUE(rows[0].logprobs.empty());
}

// One step down the gradient of the sum of weight * term, worked out here by a pass of its own over all rows.
TEST(Policy, AnUpdateIsAStepDownTheWeightedLoss) {
  const auto model = byte_model(), other = byte_model();
  Policy policy(*model, Group::single(), options(std::nullopt));
  RolloutRows rows = four_answers();
  const std::vector<double> weights = {0.1, 0.2, 0, 0.3};  // by the order of the minibatch: rows 3, 1, 2, 0
  const Metrics metrics = policy.update({minibatch_of({{{3, 1}}, {{2}}, {{0}}}), weights, reinforce}, rows);

  const std::vector<TokenIds> inputs = {rows[3].rollout->ids, rows[1].rollout->ids, rows[0].rollout->ids};
  const PackedBatch batch = pack_rows(inputs, at::kCPU);
  const Tensor logprobs = model_logprobs(*other, batch, predicted_tokens(batch)).logprobs;
  const Tensor factors = at::tensor({0.1F * 0.25F, 0.1F * 0.25F, 0.F, 0.2F * -0.5F, 0.F, 0.3F * 1.5F, 0.3F * 1.5F, 0.3F * 1.5F});
  const Tensor loss = -(logprobs * factors).sum();
  backward(loss);
  EXPECT_NEAR(*metrics.find("loss"), loss.item<double>(), 1e-6);
  EXPECT_EQ(*metrics.find("lr"), 0.5);
  EXPECT_EQ(*metrics.find("optim_step"), 0);
  EXPECT_EQ(policy.num_updates(), 1);
  const Tensor wanted = other->parameters().flat().detach() - 0.5 * other->parameters().flat_gradient();
  EXPECT_LT((model->parameters().flat().detach() - wanted).abs().max().item<double>(), 1e-6);  // gradients below 1, summed in another order
}

TEST(Policy, WhereNothingIsTrainedOnTheLossIsZeroAndTheWeightsStay) {
  const auto model = byte_model();
  const Tensor before = model->parameters().flat().detach().clone();
  Policy policy(*model, Group::single(), options(std::nullopt));
  const Metrics metrics = policy.update({minibatch_of({{{0, 1}}}), {0, 0}, reinforce}, four_answers());
  EXPECT_EQ(*metrics.find("loss"), 0);
  EXPECT_EQ(*metrics.find("grad_norm"), 0);
  EXPECT_TRUE(same_bits(model->parameters().flat().detach(), before));
}

// Momentum and decay would go on by themselves.
TEST(Policy, AfterAnUpdateOneWithoutRowsChangesNothing) {
  const auto model = byte_model();
  PolicyOptions adam = options(std::nullopt);
  adam.optim.name = OptimizerKind::adamw;
  adam.optim.lr = 0.01;
  adam.optim.weight_decay = 0.1;
  Policy policy(*model, Group::single(), adam);
  static_cast<void>(policy.update({minibatch_of({{{0, 1}}}), {0.1, 0.1}, reinforce}, four_answers()));
  const Tensor before = model->parameters().flat().detach().clone();
  static_cast<void>(policy.update({minibatch_of({{{0, 1}}}), {0, 0}, reinforce}, four_answers()));
  EXPECT_TRUE(same_bits(model->parameters().flat().detach(), before));
  EXPECT_EQ(policy.num_updates(), 2);
}

// Ranks and tokens_per_pass decide which rows go through the network together, and dropout must not depend on that.
TEST(Policy, DropoutOfARowDoesNotDependOnThePassesOfAnUpdate) {
  std::vector<Tensor> weights;
  for (const std::vector<Pass>& passes : {std::vector<Pass>{{{0, 1, 3}}}, {{{0, 1}}, {{3}}}, {{{0}}, {{1}}, {{3}}}}) {
    const auto model = byte_model({}, {.trainable = false});
    LoraConfig lora;
    lora.adapter_dropout = 0.5;
    model->add_adapters(lora, true);
    model->adapters()->initialise(3);
    Policy policy(*model, Group::single(), options(std::nullopt));
    for (int i = 0; i < 2; ++i) static_cast<void>(policy.update({minibatch_of(passes), {0.1, 0.2, 0.3}, reinforce}, four_answers()));
    weights.push_back(model->trained().flat().detach().clone());
  }
  EXPECT_TRUE(same_bits(weights[0], weights[1]));
  EXPECT_TRUE(same_bits(weights[0], weights[2]));
}

TEST(Policy, KnowsWhetherItsWeightsAreNumbers) {
  const auto model = byte_model();
  const Policy policy(*model, Group::single(), options(std::nullopt));
  EXPECT_TRUE(policy.has_finite_weights());
  model->parameters().flat_master().detach()[7] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(policy.has_finite_weights());
}

// It is asked after every step, when memory holds weights, gradients and moments.
TEST(Policy, LooksAtItsWeightsWithoutACopy) {
  const auto model = byte_model();
  const Policy policy(*model, Group::single(), options(std::nullopt));
  const testing::LargestAllocation memory;
  EXPECT_TRUE(policy.has_finite_weights());
  EXPECT_LT(memory.bytes(), model->parameters().flat_master().nbytes() / 64);
}

TEST(Policy, WeightsAreToldApartByTheirPrint) {
  const auto model = byte_model(), other = byte_model();
  Policy policy(*model, Group::single(), options(std::nullopt));
  const Policy twin(*other, Group::single(), options(std::nullopt));
  EXPECT_EQ(policy.weights_hash(), twin.weights_hash());
  static_cast<void>(policy.update({minibatch_of({{{0, 1}}}), {0.1, 0.1}, reinforce}, four_answers()));
  EXPECT_NE(policy.weights_hash(), twin.weights_hash());
  EXPECT_EQ(policy.weights_hash(), weights_hash(model->trained()));
}

// The hash is remembered; whatever changes the weights makes it forgotten.
TEST(Policy, TheHashIsThatOfTheWeightsWhateverChangedThem) {
  const auto model = byte_model(), other = byte_model();
  Policy policy(*model, Group::single(), options(ReferenceKind::swapped));
  const auto expect_current = [&] { EXPECT_EQ(policy.weights_hash(), weights_hash(model->trained())); };
  const std::string first = policy.weights_hash();
  expect_current();
  for (int i = 0; i < 2; ++i) {
    const std::string before = policy.weights_hash();
    static_cast<void>(policy.update({minibatch_of({{{0, 1}}}), {0.1, 0.1}, reinforce}, four_answers()));
    EXPECT_NE(policy.weights_hash(), before);
    expect_current();
  }
  RolloutRows rows = four_answers();
  const std::string learned = policy.weights_hash();
  policy.reference_logprobs(std::vector<Pass>{{{0, 1, 2, 3}}}, rows);  // swaps weights
  EXPECT_EQ(policy.weights_hash(), learned);
  expect_current();
  // As a checkpoint is read.
  model->trained().flat_master().detach().copy_(other->trained().flat_master());
  model->trained().publish();
  EXPECT_EQ(policy.weights_hash(), first);
}

}  // namespace
}  // namespace kedge
