#include "kedge/algo/supervised/dpo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/expect_error.h"
#include "tests/support/preference_toy.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

// Six pairs; the last is too long if rows end at 20 tokens.
struct DpoToy : testing::PreferenceToy<DpoModelConfig> {
  DpoToy() : PreferenceToy(testing::pair_rows(5) + R"({"prompt": "q5 ", "chosen": "as long as it can be", "rejected": "bad"})" + "\n") {}
  SupervisedTask begun() { return PreferenceToy::begun(0.02); }
};

TEST(Dpo, TheFirstLossIsThatOfNoPreference) {
  DpoToy toy;
  const SupervisedTask task = toy.task();
  testing::begin_task(task, *toy.model);
  const testing::BatchNumbers found = testing::run_batch(task, 2);
  EXPECT_NEAR(found.loss, std::log(2.0), 1e-6);
  EXPECT_EQ(*found.metrics.find("rewards/margins"), 0);
  EXPECT_EQ(*found.metrics.find("rewards/accuracies"), 0);
}

TEST(Dpo, HasTheLossOfItsFormula) {
  DpoToy toy;
  std::vector<double> before;
  const auto ratios = [&] {
    std::vector<double> all;
    for (int i = 0; i < 5; ++i) {
      const std::string prompt = "q" + std::to_string(i) + " ";
      all.push_back(toy.logprob(prompt, "good" + std::string(static_cast<size_t>(i % 3), '!')));
      all.push_back(toy.logprob(prompt, "bad"));
    }
    all.push_back(toy.logprob("q5 ", "as long as it can be"));
    all.push_back(toy.logprob("q5 ", "bad"));
    return all;
  };
  before = ratios();
  const SupervisedTask task = toy.begun();
  const std::vector<double> after = ratios();
  double wanted = 0, margin = 0, chosen = 0;
  for (size_t i = 0; i < before.size(); i += 2) {
    const double d = (after[i] - before[i]) - (after[i + 1] - before[i + 1]);
    wanted += std::log1p(std::exp(-0.5 * d)) / 6;
    margin += 0.5 * d / 6;
    chosen += after[i] / 6;
  }
  const testing::BatchNumbers found = testing::run_batch(task, 4);
  EXPECT_NEAR(found.loss, wanted, 1e-5);
  EXPECT_NEAR(*found.metrics.find("loss"), wanted, 1e-5);
  EXPECT_NEAR(*found.metrics.find("rewards/margins"), margin, 1e-5);
  EXPECT_NEAR(*found.metrics.find("logps/chosen"), chosen, 1e-4);
  EXPECT_FALSE(found.metrics.find("skipped"));
}

TEST(Dpo, MicroBatchesAddUpToTheBatch) {
  DpoToy toy;
  toy.config.data.seq_length = 20;  // one pair is left out
  toy.config.loss.sft_loss_weight = 0.3;
  const SupervisedTask task = toy.begun();
  const testing::BatchNumbers whole = testing::run_batch(task, 6);
  const Tensor wanted = toy.model->parameters().flat_gradient().clone();
  EXPECT_EQ(*whole.metrics.find("skipped"), 1);
  for (const size_t size : {1U, 2U, 5U}) {
    toy.model->parameters().zero_gradients();
    const testing::BatchNumbers parts = testing::run_batch(task, size);
    EXPECT_NEAR(parts.loss, whole.loss, 1e-6 * whole.loss);
    EXPECT_LT(testing::relative_error(toy.model->parameters().flat_gradient(), wanted), 1e-5);
  }
}

TEST(Dpo, APairThatIsTooLongTeachesNothing) {
  DpoToy toy;
  toy.config.data.seq_length = 20;
  DpoToy without;
  without.take_rows(testing::pair_rows(5));
  EXPECT_NEAR(testing::run_batch(toy.begun(), 2).loss, testing::run_batch(without.begun(), 2).loss, 1e-6);
}

// Without an end token there is nothing to predict in an empty response.
TEST(Dpo, AFileOfWhichNothingFitsIsRefused) {
  DpoToy toy;
  toy.config.data.seq_length = 20;
  EXPECT_EQ(measure_data(toy.task().train, 2).num_looked_at, 6);
  toy.config.data.seq_length = 4;
  EXPECT_EQ(error_of([&] { return measure_data(toy.task().train, 2); }),
            "model.data.data_prefix: train: each of the 6 rows has more tokens than model.data.seq_length allows or no label, so there is "
            "nothing to learn");
}

TEST(Dpo, EmptyResponsesTeachNothing) {
  DpoToy toy;
  toy.take_rows(R"({"prompt": "p ", "chosen": "", "rejected": ""})"
                "\n"
                R"({"prompt": "q ", "chosen": "a", "rejected": ""})"
                "\n");
  const SupervisedTask task = toy.begun();
  const testing::BatchNumbers apart = testing::run_batch(task, 1);
  const Tensor wanted = toy.model->parameters().flat_gradient().clone();
  EXPECT_GT(wanted.abs().max().item<double>(), 0);
  toy.model->parameters().zero_gradients();
  const testing::BatchNumbers together = testing::run_batch(task, 2);
  EXPECT_LT(testing::relative_error(toy.model->parameters().flat_gradient(), wanted), 1e-5);
  EXPECT_NEAR(*apart.metrics.find("loss"), *together.metrics.find("loss"), 1e-6);
}

TEST(Dpo, AddsTheSftLossOfTheBetterResponse) {
  DpoToy toy;
  toy.config.loss.preference_loss_weight = 0;
  toy.config.loss.sft_loss_weight = 2;
  toy.take_rows(testing::pair_rows(1));
  double loss = testing::run_batch(toy.begun(), 1).loss;  // begun() moves the weights
  EXPECT_NEAR(loss, -2 * toy.logprob("q0 ", "good"), 1e-4);
  toy.config.loss.sft_average_log_probs = true;
  loss = testing::run_batch(toy.begun(), 1).loss;
  EXPECT_NEAR(loss, -2 * toy.logprob("q0 ", "good") / 4, 1e-5);
}

TEST(Dpo, GivenRewardsAreTheGoalOfRpo) {
  DpoToy toy;
  toy.config.loss.preference_loss = DpoLoss::rpo_sq;
  toy.config.loss.gt_reward_scale = 3;
  toy.take_rows(R"({"prompt": "p ", "chosen": "a", "rejected": "b", "chosen_reward": 4, "rejected_reward": 2})");
  const SupervisedTask task = toy.task();
  testing::begin_task(task, *toy.model);
  EXPECT_NEAR(testing::run_batch(task, 1).loss, 36, 1e-4);  // (0 - 3 x 2)^2
}

TEST(Dpo, ARehearsalNeedsNoReference) {
  DpoToy toy;
  const SupervisedTask task = toy.task();
  EXPECT_TRUE(task.train.rehearse(std::vector<int64_t>{0, 1}, {}).defined());
  EXPECT_EQ(task.train.size_of(0).rows, 2);
  EXPECT_EQ(task.train.size_of(0).tokens, 6 + 5);  // "q0 good", "q0 bad" without their last tokens
}

TEST(Dpo, SettingsThatContradictThemselves) {
  const auto error = [](const auto& change) {
    DpoModelConfig config;
    change(config.loss);
    return error_of([&] { check_dpo_config(config); });
  };
  EXPECT_THAT(error([](DpoTuningConfig& c) { c.preference_loss = DpoLoss::ipo, c.label_smoothing = 0.1; }),
              HasSubstr("model.dpo.label_smoothing"));
  EXPECT_THAT(error([](DpoTuningConfig& c) { c.preference_loss = DpoLoss::ipo, c.ref_policy_kl_penalty = 0; }),
              HasSubstr("model.dpo.ref_policy_kl_penalty"));
  EXPECT_THAT(error([](DpoTuningConfig& c) { c.preference_loss_weight = 0; }), HasSubstr("nothing to learn"));
  EXPECT_THAT(error([](DpoTuningConfig& c) { c.ref_policy_kl_penalty = 0; }), HasSubstr("model.dpo.ref_policy_kl_penalty: 0"));
  DpoModelConfig config;
  config.loss.ref_policy_kl_penalty = 0, config.loss.sft_loss_weight = 1;
  EXPECT_NO_THROW(check_dpo_config(config));
}

}  // namespace
}  // namespace kedge
