#include "kedge/inspect/run_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kedge {
namespace {

using ::testing::HasSubstr;

// A run of steps, each with the numbers that `of` gives it.
template <typename Function>
std::vector<MetricsLine> run_of(int64_t num_steps, const Function& of) {
  std::vector<MetricsLine> lines;
  for (int64_t step = 0; step < num_steps; ++step) {
    Metrics metrics = of(static_cast<double>(step));
    metrics.set("train/step_time", 2.0);
    lines.push_back({step, 1000.0 + 2.0 * static_cast<double>(step), metrics});
  }
  return lines;
}

std::vector<std::string> labels_of(const RunNumbers& numbers) {
  std::vector<std::string> labels;
  for (const NumberRow& row : numbers.rows) labels.push_back(row.label);
  return labels;
}

TEST(RunNumbers, AnOnlineRunShowsWhatItWasTrainedOnFirst) {
  std::vector<MetricsLine> lines = run_of(10, [](double step) {
    return Metrics{{"train_rollouts/init_policy_kl", 0.1},
                   {"train_rollouts/watch/polite", 1},
                   {"train_rollouts/rewards", step},
                   {"train_rollouts/rewards/lexicon", step},
                   {"train_rollouts/consumed_samples", 16}};
  });
  lines.push_back({10, 1030, {{"val_rollouts/rewards", 4}, {"timers/validation_time", 3}}});
  const RunNumbers numbers = read_numbers(lines);
  EXPECT_EQ(labels_of(numbers), (std::vector<std::string>{"reward", "watched polite", "validation reward", "KL from the start"}));
  EXPECT_EQ(numbers.num_steps, 10);
  EXPECT_EQ(numbers.seconds, 23);
  EXPECT_EQ(numbers.first_time, 1000);
  EXPECT_EQ(numbers.last_time, 1030);
  EXPECT_EQ(numbers.main()->label, "reward");
  EXPECT_EQ(verdict_of(numbers), "reward rose from 0 to 9: better, by more than its noise");
}

// What was watched tells whether the reward still stands for what is wanted.
TEST(RunNumbers, AWatchedRewardThatFallsIsInTheVerdictAndTheHints) {
  const auto lines = run_of(40, [](double step) {
    const double noise = std::fmod(step * 7, 5) / 500;
    return Metrics{{"train_rollouts/rewards", step / 10 + noise}, {"train_rollouts/watch/right", 0.89 - step / 400 + noise}};
  });
  const RunNumbers numbers = read_numbers(lines);
  EXPECT_THAT(verdict_of(numbers), ::testing::MatchesRegex("reward rose .*: better, by more than its noise; but watched right fell"));
  std::string hints;
  for (const Hint& hint : find_hints(numbers, 0)) hints += hint.what + "\n";
  EXPECT_THAT(hints, HasSubstr("watched right"));
}

TEST(RunNumbers, UpdatesThatChangedNothingAreTold) {
  const auto hints_of = [](int num_idle) {
    return find_hints(
        read_numbers(run_of(12,
                            [&](double step) {
                              return Metrics{{"train_rollouts/rewards", 1}, {"train_optim/grad_norm", step < num_idle ? 0 : 0.5}};
                            })),
        0);
  };
  ASSERT_EQ(hints_of(10).size(), 1U);
  EXPECT_EQ(hints_of(10)[0].what, "the gradient was 0 in 10 of 12 updates: unfinished=drop, or failed or equal rewards");
  EXPECT_TRUE(hints_of(6).empty());
}

TEST(RunNumbers, SourcesAreShownWhereThereAreSeveral) {
  const auto lines = run_of(3, [](double) {
    return Metrics{{"train_rollouts/rewards", 1}, {"train_rollouts/rewards/a", 1}, {"train_rollouts/rewards/b", 1}};
  });
  EXPECT_EQ(labels_of(read_numbers(lines)), (std::vector<std::string>{"reward", "  of a", "  of b"}));
}

TEST(RunNumbers, OfSeveralUpdatesOfAStepTheLastCounts) {
  const std::vector<MetricsLine> lines = {{0, 1, {{"train/loss", 5}}}, {0, 2, {{"train/loss", 4}}}, {1, 3, {{"train/loss", 3}}}};
  EXPECT_EQ(read_numbers(lines).rows[0].series.values, (std::vector<double>{4, 3}));
}

TEST(RunNumbers, VerdictsOfALoss) {
  EXPECT_EQ(verdict_of(read_numbers(run_of(20,
                                           [](double step) {
                                             return Metrics{{"train/loss", 3 - 0.1 * step}};
                                           }))),
            "loss fell from 2.95 to 1.15: better, by more than its noise");
  EXPECT_EQ(verdict_of(read_numbers(run_of(20,
                                           [](double step) {
                                             return Metrics{{"train/loss", 3 + 0.1 * step}};
                                           }))),
            "loss rose from 3.05 to 4.85: worse, by more than its noise");
  EXPECT_EQ(verdict_of(read_numbers(run_of(20,
                                           [](double) {
                                             return Metrics{{"train/loss", 3}};
                                           }))),
            "loss did not change by more than its noise, from 3 to 3");
  std::vector<MetricsLine> overfit = run_of(20, [](double step) { return Metrics{{"train/loss", 3 - 0.1 * step}}; });
  for (int64_t step = 5; step <= 20; step += 5) overfit.push_back({step, 1, {{"validation/loss", 1 + 0.2 * static_cast<double>(step)}}});
  EXPECT_EQ(verdict_of(read_numbers(overfit)),
            "loss fell from 2.95 to 1.15: better, by more than its noise; validation loss rose from 2 to 5: worse, by more than its noise");
  EXPECT_EQ(verdict_of(read_numbers(run_of(3, [](double) { return Metrics{{"train/loss", NAN}}; }))), "loss was never a finite number");
  EXPECT_EQ(verdict_of(read_numbers(run_of(3,
                                           [](double step) {
                                             return Metrics{{"train/loss", step}};
                                           }))),
            "loss went from 0 to 2, too few values to tell that from noise");
  EXPECT_EQ(verdict_of({}), "no metric shows whether it worked");
}

TEST(RunNumbers, ARunThatGoesWellGivesNoHints) {
  const auto lines = run_of(50, [](double step) {
    return Metrics{{"train_rollouts/rewards", step},
                   {"train_rollouts/init_policy_kl", 0.01 * step},
                   {"train_rollouts/entropy", 3 - 0.01 * step},
                   {"train_rollouts/fraction_of_samples_properly_ended", 0.9},
                   {"train_optim/loss", 1},
                   {"train_optim/grad_norm", 2}};
  });
  EXPECT_TRUE(find_hints(read_numbers(lines), 2).empty());
}

TEST(RunNumbers, WhatWentWrongIsToldInItsOrder) {
  const auto lines = run_of(60, [](double step) {
    return Metrics{{"train_rollouts/rewards", step < 40 ? step : 80 - step},
                   {"train_rollouts/watch/polite", step < 20 ? 5 : 5 - (step - 20) / 4},
                   {"train_rollouts/init_policy_kl", step < 30 ? 0.1 : 3},
                   {"train_rollouts/fraction_of_samples_properly_ended", step < 10 ? 0.9 : 0.2},
                   {"train_rollouts/entropy", step < 50 ? 3 : 0.1},
                   {"train_optim/grad_norm", step == 55 ? NAN : 1}};
  });
  const std::vector<Hint> hints = find_hints(read_numbers(lines), 2);
  ASSERT_EQ(hints.size(), 6U);
  EXPECT_THAT(hints[0].what, HasSubstr("ended by themselves got worse: 90 % around step"));
  EXPECT_NEAR(static_cast<double>(hints[0].step), 10, 4);
  EXPECT_THAT(hints[1].what, HasSubstr("watched polite got worse"));
  EXPECT_THAT(hints[2].what, HasSubstr("KL run-away: more than 2 nats per token"));
  EXPECT_NEAR(static_cast<double>(hints[2].step), 30, 4);
  EXPECT_THAT(hints[3].what, HasSubstr("reward got worse"));
  EXPECT_NEAR(static_cast<double>(hints[3].step), 44, 4);
  EXPECT_THAT(hints[4].what, HasSubstr("entropy is below 20 % of what it was"));
  EXPECT_EQ(hints[5].what, "train_optim/grad_norm is not a finite number");
  EXPECT_EQ(hints[5].step, 55);
}

constexpr std::string_view kLog =
    "2026-11-16 02:22:16 reinforce of 656000 parameters\n"
    "2026-11-16 02:22:16 Training steps 0/80\n"
    "2026-11-16 02:22:22 Training steps 5/80  rewards 2.939  warning is a word here\n"
    "2026-11-16 02:22:23 warning 5 of 64 answers ended by themselves. Where they were cut off:\n"
    "  error of its own line\n"
    "2026-11-16 02:24:28 warning after step 17: KL run-away: the policy is 2.94 nats\n";

TEST(RunNumbers, WarningsOfTheLogHaveTheirSteps) {
  const LogFindings found = read_log(kLog);
  EXPECT_EQ(found.num_warnings, 2);
  ASSERT_TRUE(found.first_warning && found.first_alarm);
  EXPECT_EQ(found.first_warning->step, 5);
  EXPECT_EQ(found.first_warning->what, "5 of 64 answers ended by themselves. Where they were cut off:");
  EXPECT_EQ(found.first_alarm->step, 17);
  EXPECT_EQ(found.first_alarm->what, "KL run-away: the policy is 2.94 nats");
  EXPECT_FALSE(found.last_error.has_value());
}

TEST(RunNumbers, AnErrorAtTheEndOfTheLog) {
  EXPECT_EQ(read_log(std::string(kLog) + "2026-11-16 02:24:28 error disk full\n").last_error, std::optional<std::string>("disk full"));
  EXPECT_FALSE(read_log(std::string(kLog) + "2026-11-16 02:24:28 error disk full\n2026-11-16 02:24:29 done\n").last_error.has_value());
  EXPECT_EQ(read_log("").num_warnings, 0);
}

}  // namespace
}  // namespace kedge
