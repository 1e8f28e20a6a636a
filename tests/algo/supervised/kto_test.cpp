#include "kedge/algo/supervised/kto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kedge/algo/supervised/response_logprobs.h"

#include "tests/support/expect_error.h"
#include "tests/support/preference_toy.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

const std::vector<std::string> kPrompts = {"q0 ", "q1 ", "q2 ", "q3 "}, kAnswers = {"good!", "bad", "fine", "worse than that"};

struct KtoToy {
  testing::TempFolder temp;
  std::unique_ptr<Model> model = testing::byte_model();
  std::unique_ptr<Tokenizer> tokenizer = make_byte_tokenizer();
  KtoModelConfig config;

  KtoToy() {
    std::string rows;
    for (size_t i = 0; i < kPrompts.size(); ++i)
      rows += str("{\"prompt\": \"", kPrompts[i], "\", \"response\": \"", kAnswers[i], "\", \"preference\": \"",
                  i % 2 == 0 ? "chosen" : "rejected", "\"}\n");
    config.data.data_prefix = testing::data_prefix(temp.file("marked.jsonl", rows));
    config.data.seq_length = 64;
    config.loss.ref_policy_kl_penalty = 0.5;
    config.loss.undesirable_loss_weight = 2;
  }
  SupervisedTask begun() {
    SupervisedTask made = make_kto_task(config, model, *tokenizer, "none");
    testing::begin_task(made, *model);
    testing::scatter_weights(model->parameters(), 900, 0.05);
    return made;
  }
  [[nodiscard]] double logprob(const std::string& prompt, const std::string& response) const {
    const std::vector<ResponseRow> row = {{tokenizer->encode(prompt + response), static_cast<int64_t>(prompt.size())}};
    return response_logprobs(*model, row)[0].item<double>();
  }
  // Of every row, then of every prompt with the response before it.
  [[nodiscard]] std::vector<double> logprobs() const {
    std::vector<double> all;
    for (size_t i = 0; i < 4; ++i) all.push_back(logprob(kPrompts[i], kAnswers[i]));
    for (size_t i = 0; i < 4; ++i) all.push_back(logprob(kPrompts[i], kAnswers[(i + 3) % 4]));
    return all;
  }
};

TEST(Kto, HasTheLossOfItsFormula) {
  KtoToy toy;
  const std::vector<double> before = toy.logprobs();
  const SupervisedTask task = toy.begun();
  const std::vector<double> after = toy.logprobs();
  double kl = 0, wanted = 0;
  for (size_t i = 4; i < 8; ++i) kl += (after[i] - before[i]) / 4;
  kl = std::max(0.0, kl);
  for (size_t i = 0; i < 4; ++i) {
    const double x = 0.5 * (after[i] - before[i] - kl);
    wanted += i % 2 == 0 ? (1 - 1 / (1 + std::exp(-x))) / 4 : 2 * (1 - 1 / (1 + std::exp(x))) / 4;
  }
  for (const size_t size : {4U, 2U, 1U}) {
    const testing::BatchNumbers found = testing::run_batch(task, size);
    EXPECT_NEAR(found.loss, wanted, 1e-5);
    EXPECT_NEAR(*found.metrics.find("kl"), kl, 1e-4);
    EXPECT_NEAR(*found.metrics.find("rewards_chosen_mean"), (after[0] - before[0] + after[2] - before[2]) / 2, 1e-4);
    EXPECT_NEAR(*found.metrics.find("rewards/rejected"), 0.5 * (after[1] - before[1] + after[3] - before[3]) / 2, 1e-4);
  }
}

TEST(Kto, MicroBatchesAddUpToTheBatch) {
  KtoToy toy;
  toy.config.data.seq_length = 14;  // the last row is left out, and the first prompt then has no other response
  toy.config.loss.sft_loss_weight = 0.3;
  const SupervisedTask task = toy.begun();
  const testing::BatchNumbers whole = testing::run_batch(task, 4);
  const Tensor wanted = toy.model->parameters().flat_gradient().clone();
  EXPECT_EQ(*whole.metrics.find("skipped"), 1);
  for (const size_t size : {1U, 2U, 3U}) {
    toy.model->parameters().zero_gradients();
    EXPECT_NEAR(testing::run_batch(task, size).loss, whole.loss, 1e-6 * whole.loss);
    EXPECT_LT(testing::relative_error(toy.model->parameters().flat_gradient(), wanted), 1e-5);
  }
}

TEST(Kto, ABatchOfOneIsRefused) {
  KtoModelConfig config;
  EXPECT_NO_THROW(check_kto_config(config));
  config.global_batch_size = 1;
  EXPECT_THAT(error_of([&] { check_kto_config(config); }), HasSubstr("model.global_batch_size: 1"));
}

}  // namespace
}  // namespace kedge
