#include "kedge/inspect/run_charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace kedge {
namespace {

using ::testing::ElementsAre;
using Names = std::vector<std::string>;

Names titles_of(const std::vector<Chart>& charts) {
  Names titles;
  for (const Chart& chart : charts) titles.push_back(chart.title);
  return titles;
}

Names labels_of(const std::vector<ChartSeries>& series) {
  Names labels;
  for (const ChartSeries& one : series) labels.push_back(one.label);
  return labels;
}

Names names_of(const std::vector<ChartSeries>& series) {
  Names names;
  for (const ChartSeries& one : series) names.push_back(one.name);
  return names;
}

TEST(RunCharts, AnOnlineRunBeginsWithItsReward) {
  const Names names = {"train_optim/lr",
                       "train_optim/loss",
                       "val_rollouts/rewards",
                       "train_rollouts/watch/polite",
                       "train_rollouts/init_policy_kl",
                       "val_rollouts/watch/polite",
                       "train_optim/grad_norm",
                       "train_rollouts/entropy",
                       "train_rollouts/fraction_of_samples_properly_ended",
                       "train_rollouts/generation_length",
                       "train_rollouts/rewards"};
  const std::vector<Chart> charts = charts_of(names);
  EXPECT_THAT(titles_of(charts), ElementsAre("Reward", "Watched rewards", "KL from the start", "Loss", "Length of answers",
                                             "Answers that ended by themselves", "Entropy", "Gradient norm", "Learning rate"));
  EXPECT_TRUE(std::all_of(charts.begin(), charts.end(), [](const Chart& chart) { return chart.is_main; }));
  EXPECT_THAT(names_of(charts[0].series), ElementsAre("train_rollouts/rewards", "val_rollouts/rewards"));
  EXPECT_THAT(labels_of(charts[0].series), ElementsAre("training", "validation"));
  EXPECT_FALSE(charts[0].series[0].is_validation);
  EXPECT_TRUE(charts[0].series[1].is_validation);
  EXPECT_THAT(labels_of(charts[1].series), ElementsAre("polite", "polite, validation"));
  EXPECT_EQ(charts[2].unit, "nats per token");
  EXPECT_EQ(charts[5].format, ChartFormat::share);
  EXPECT_EQ(charts[8].format, ChartFormat::tiny);
}

TEST(RunCharts, ASupervisedRunHasLossAndAccuracyOfBothSplits) {
  const Names names = {"validation/loss", "validation/acc", "train/acc", "train/loss", "train/lr"};
  const std::vector<Chart> charts = charts_of(names);
  EXPECT_THAT(titles_of(charts), ElementsAre("Loss", "Accuracy", "Learning rate"));
  EXPECT_THAT(names_of(charts[0].series), ElementsAre("train/loss", "validation/loss"));
}

TEST(RunCharts, PpoTellsOfItsCriticAndItsRatio) {
  const Names names = {"train_optim/ppo_ratio_clamped",   "train_optim/ppo_ratio",      "train_optim/ppo_clip_fraction",
                       "train_rollouts/values_explained", "train_rollouts/values_loss", "train_rollouts/values_std",
                       "train_rollouts/values_mean"};
  const std::vector<Chart> charts = charts_of(names);
  EXPECT_THAT(titles_of(charts), ElementsAre("Values explained", "Loss of the values", "Tokens with a clipped ratio",
                                             "Ratio of new to old probability", "Values"));
  EXPECT_THAT(labels_of(charts[3].series), ElementsAre("ratio", "held"));
  EXPECT_THAT(labels_of(charts[4].series), ElementsAre("mean", "standard deviation"));
}

TEST(RunCharts, SourcesAreNamedAndTheirRewardsLieTogether) {
  const Names names = {"train_rollouts/rewards/length", "train_rollouts/rewards/lexicon", "val_rollouts/rewards/lexicon"};
  const std::vector<Chart> charts = charts_of(names);
  EXPECT_THAT(titles_of(charts), ElementsAre("Rewards by source"));
  EXPECT_THAT(labels_of(charts[0].series), ElementsAre("length", "lexicon", "lexicon, validation"));
}

TEST(RunCharts, WhatNobodyKnowsHasAChartBelow) {
  const Names names = {"train_rollouts/prompt_lengths", "val_rollouts/prompt_lengths", "timers/queue", "own/number", "loss", ""};
  const std::vector<Chart> charts = charts_of(names);
  EXPECT_THAT(titles_of(charts), ElementsAre("", "loss", "own/number", "prompt lengths", "Time of queue"));
  EXPECT_FALSE(std::any_of(charts.begin(), charts.end(), [](const Chart& chart) { return chart.is_main; }));
  EXPECT_THAT(labels_of(charts[3].series), ElementsAre("training", "validation"));
  EXPECT_EQ(charts[4].format, ChartFormat::seconds);
}

TEST(RunCharts, ANameThatComesTwiceIsThereOnce) {
  const Names names = {"train/loss", "train/loss"};
  const std::vector<Chart> charts = charts_of(names);
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_EQ(charts[0].series.size(), 1U);
}

TEST(RunCharts, TheTimeOfAStepHasItsPartsInTheirOrder) {
  const Names names = {"timers/train_time", "timers/generate", "timers/rollout_time", "train/step_time", "timers/init_logprobs"};
  const StepTiming timing = timing_of(names);
  EXPECT_THAT(labels_of(timing.parts), ElementsAre("generation", "log-probs, reference", "updates"));
  EXPECT_EQ(timing.total, "train/step_time");
  // The parts have no charts of their own, the sums have.
  EXPECT_THAT(titles_of(charts_of(names)), ElementsAre("Time of the rollouts", "Time of a step"));
  EXPECT_TRUE(timing_of({}).parts.empty());
  EXPECT_EQ(timing_of({}).total, "");
}

TEST(RunCharts, FormatsHaveNames) {
  EXPECT_EQ(name_of(ChartFormat::number), "number");
  EXPECT_EQ(name_of(ChartFormat::share), "share");
  EXPECT_EQ(name_of(ChartFormat::seconds), "seconds");
  EXPECT_EQ(name_of(ChartFormat::tiny), "tiny");
}

}  // namespace
}  // namespace kedge
