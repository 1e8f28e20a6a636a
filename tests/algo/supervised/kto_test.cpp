#include "kedge/algo/supervised/kto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/expect_error.h"
#include "tests/support/preference_toy.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

const std::vector<std::string> kPrompts = {"q0 ", "q1 ", "q2 ", "q3 "}, kAnswers = {"good!", "bad", "fine", "worse than that"};

std::string marked_rows() {
  std::string rows;
  for (size_t i = 0; i < kPrompts.size(); ++i)
    rows += str("{\"prompt\": \"", kPrompts[i], "\", \"response\": \"", kAnswers[i], "\", \"preference\": \"",
                i % 2 == 0 ? "chosen" : "rejected", "\"}\n");
  return rows;
}

struct KtoToy : testing::PreferenceToy<KtoModelConfig> {
  KtoToy() : PreferenceToy(marked_rows()) { config.loss.undesirable_loss_weight = 2; }
  SupervisedTask begun() { return PreferenceToy::begun(0.05); }
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

TEST(Kto, AFileOfWhichNothingFitsIsRefused) {
  KtoToy toy;
  toy.config.data.seq_length = 4;
  EXPECT_THAT(error_of([&] { return measure_data(toy.task().train, 2); }), HasSubstr("each of the 4 rows has more tokens"));
}

TEST(Kto, AnEmptyResponseTeachesNothing) {
  KtoToy toy;
  toy.take_rows(R"({"prompt": "p ", "completion": "", "label": false})"
                "\n"
                R"({"prompt": "q ", "completion": "a", "label": true})"
                "\n");
  const SupervisedTask task = toy.begun();
  const testing::BatchNumbers apart = testing::run_batch(task, 1);
  const Tensor wanted = toy.model->parameters().flat_gradient().clone();
  toy.model->parameters().zero_gradients();
  const testing::BatchNumbers together = testing::run_batch(task, 2);
  EXPECT_LT(testing::relative_error(toy.model->parameters().flat_gradient(), wanted), 1e-5);
  EXPECT_NEAR(*apart.metrics.find("loss"), *together.metrics.find("loss"), 1e-6);
}

TEST(Kto, WeightsThatLeaveNothingToLearnAreRefused) {
  KtoModelConfig config;
  config.loss.desirable_loss_weight = config.loss.undesirable_loss_weight = 0;
  EXPECT_THAT(error_of([&] { check_kto_config(config); }), HasSubstr("undesirable_loss_weight: both are 0"));
  config.loss.sft_loss_weight = 1;
  EXPECT_NO_THROW(check_kto_config(config));
}

TEST(Kto, ABatchOfOneIsRefused) {
  KtoModelConfig config;
  EXPECT_NO_THROW(check_kto_config(config));
  config.global_batch_size = 1;
  EXPECT_THAT(error_of([&] { check_kto_config(config); }), HasSubstr("model.global_batch_size: 1"));
}

}  // namespace
}  // namespace kedge
