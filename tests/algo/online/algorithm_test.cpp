#include "kedge/algo/online/algorithm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/algo/online/policy_losses.h"

#include "tests/support/online_toy.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::OnlineToy;

TEST(Algorithm, KlIsMeasuredWhereBothSidesAreKnown) {
  RolloutRows rows(2);
  rows[0].logprobs = {-0.5F, -1.5F};
  rows[0].reference = {-1.0F, -1.0F};
  rows[1].logprobs = {-1.0F};
  add_kl(rows, KlEstimator::abs);
  EXPECT_EQ(rows[0].kl_mean, 0.5);
  EXPECT_EQ(rows[0].kl_sum, 1.0);
  EXPECT_EQ(rows[1].kl_sum, 0);
}

// Rewards against a fixed bar: all that an algorithm of your own has to say.
class AboveTheBar final : public Algorithm {
 public:
  void score(OnlineStep& step) const override {
    for (RolloutRow& row : step.rows) {
      row.trains = !row.reward.failed();
      row.advantage = row.reward.value - 0.5;
    }
    step.metrics.set("bar", 0.5);
  }
  [[nodiscard]] TokenObjective objective() const override {
    return {.loss = [](const PassTokens& tokens) { return reinforce_terms(tokens.logprobs, tokens.advantages); },
            .constants = {{"mark", 7}}};
  }
  [[nodiscard]] Metrics metrics(const OnlineStep& step) const override { return step.metrics; }
  [[nodiscard]] Metrics validation_metrics(const RolloutRows& rows) const override { return {{"seen", static_cast<double>(rows.size())}}; }
};

TEST(Algorithm, OneOfYourOwnTrains) {
  OnlineToy toy;
  OnlineTrainer trainer(toy.parts(), settings_of(toy.reinforce), std::make_unique<AboveTheBar>());
  const double before = *trainer.run_validation().metrics.find("val_rollouts/rewards");
  const StepReport report = trainer.train_step();
  EXPECT_EQ(*report.metrics.find("train_rollouts/bar"), 0.5);
  for (const Metrics& update : report.updates) EXPECT_EQ(*update.find("train_optim/mark"), 7);
  EXPECT_GT(*trainer.run_validation().metrics.find("val_rollouts/seen"), 0);
  for (int i = 0; i < 40; ++i) static_cast<void>(trainer.train_step());
  EXPECT_GT(*trainer.run_validation().metrics.find("val_rollouts/rewards"), std::min(0.95, before + 0.2));
}

// The first responses to each prompt, whatever their rewards.
class First final : public Algorithm {
 public:
  [[nodiscard]] bool chooses_rows() const override { return true; }
  void score(OnlineStep& step) const override {
    for (size_t i = 0; i < step.rows.size(); ++i) {
      if (step.rows[i].rollout->sample != 0) continue;
      step.rows[i].trains = true;
      step.chosen.push_back(static_cast<int64_t>(i));
    }
  }
  [[nodiscard]] TokenObjective objective() const override {
    return {.loss = [](const PassTokens& tokens) { return answer_terms(tokens.logprobs); }};
  }
  [[nodiscard]] Metrics metrics(const OnlineStep&) const override { return {}; }
};

TEST(Algorithm, UpdatesAreMadeOfTheRowsThatItChooses) {
  OnlineToy toy;
  OnlineTrainer trainer(toy.parts(), settings_of(toy.rs), std::make_unique<First>());
  OnlineStep step = trainer.generate_rollouts();
  EXPECT_TRUE(step.minibatches.empty()) << "nothing is chosen yet";
  trainer.score(step);
  std::vector<int64_t> samples;
  for (const Minibatch& minibatch : step.minibatches)
    for (const int64_t row : minibatch.rows) samples.push_back(step.rows[static_cast<size_t>(row)].rollout->sample);
  EXPECT_THAT(samples, ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace kedge
