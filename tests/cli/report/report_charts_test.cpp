#include "cli/report/report_charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/count_of.h"

namespace kedge::cli {
namespace {

using kedge::testing::count_of;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Series series_of(const std::string& name, int64_t size, double factor = 1) {
  Series series{.name = name};
  for (int64_t step = 0; step < size; ++step) series.add(step, factor * static_cast<double>(step));
  return series;
}

TEST(ReportCharts, TrainingAndValidationStandInOneChart) {
  const RunCurves run{"first", {series_of("train_rollouts/rewards", 40), series_of("val_rollouts/rewards", 3)}};
  const std::string html = charts_html(std::span(&run, 1), ChartRank::main);
  EXPECT_EQ(count_of(html, "<svg"), 1U);
  EXPECT_THAT(html, HasSubstr("<figcaption>Reward</figcaption>"));
  EXPECT_THAT(html, AllOf(HasSubstr("</i>training</span>"), HasSubstr("<i class=\"dotted\"></i>validation</span>")));
  EXPECT_EQ(count_of(html, "class=\"raw\""), 1U);  // many numbers are smoothed
  EXPECT_EQ(count_of(html, "class=\"dot\""), 3U);
}

TEST(ReportCharts, RunsHaveTheirColours) {
  const std::vector<RunCurves> runs = {{"slow", {series_of("train/loss", 5)}}, {"<fast>", {series_of("train/loss", 5, 2)}}};
  const std::string html = charts_html(runs, ChartRank::main);
  EXPECT_EQ(count_of(html, "<svg"), 1U);
  EXPECT_THAT(html, AllOf(HasSubstr("<span class=\"k0\"><i></i>slow</span>"), HasSubstr("<span class=\"k1\"><i></i>&lt;fast&gt;</span>")));
  EXPECT_THAT(html, Not(HasSubstr("<fast>")));
}

TEST(ReportCharts, SharesAreInPercent) {
  const RunCurves run{"first", {series_of("train/acc", 5, 0.25)}};
  EXPECT_THAT(charts_html(std::span(&run, 1), ChartRank::main), AllOf(HasSubstr(">80 %</text>"), HasSubstr("step 2: 50 %<")));
}

TEST(ReportCharts, WhatIsLessAskedForIsBelow) {
  const RunCurves run{"first", {series_of("train/loss", 5), series_of("some/other", 5)}};
  EXPECT_THAT(charts_html(std::span(&run, 1), ChartRank::main), Not(HasSubstr("other")));
  EXPECT_THAT(charts_html(std::span(&run, 1), ChartRank::other), HasSubstr("other"));
}

TEST(ReportCharts, NoNumbersNoCharts) {
  const RunCurves run{"first", {}};
  EXPECT_EQ(charts_html(std::span(&run, 1), ChartRank::main), "");
  EXPECT_EQ(timing_html(std::span(&run, 1)), "");
}

TEST(ReportCharts, AHundredThousandPointsMakeASmallPage) {
  RunCurves run{"long", {}};
  for (int i = 0; i < 40; ++i) {
    Series series{.name = "train_rollouts/watch/" + std::to_string(i)};
    for (int64_t step = 0; step < 100000; ++step) series.add(step, std::sin(static_cast<double>(step) * 0.37) + i);
    run.series.push_back(std::move(series));
  }
  EXPECT_LT(charts_html(std::span(&run, 1), ChartRank::main).size(), 1200000U);
}

// 2 s a step: drawing 0.5 s, updates 1 s, and a rest.
TEST(ReportCharts, TheTimeOfAStepIsInParts) {
  RunCurves run{"first", {{.name = "timers/generate"}, {.name = "timers/train_time"}, {.name = "train/step_time"}}};
  for (int64_t step = 0; step < 100; ++step) {
    run.series[0].add(step, 0.5);
    run.series[1].add(step, 1);
    run.series[2].add(step, 2);
  }
  const std::string html = timing_html(std::span(&run, 1));
  EXPECT_THAT(html, HasSubstr("<figcaption>a step took 2 s</figcaption>"));
  EXPECT_THAT(html, AllOf(HasSubstr("generation 0.5 s, 25 %"), HasSubstr("updates 1 s, 50 %"), HasSubstr("the rest 0.5 s, 25 %")));
  EXPECT_EQ(count_of(html, "<rect"), 3 * 40U);
}

TEST(ReportCharts, OnlyTheWholeStepWasTimed) {
  const RunCurves run{"first", {{.name = "train/step_time", .steps = {0, 1}, .values = {1, 3}}}};
  EXPECT_THAT(timing_html(std::span(&run, 1)), AllOf(HasSubstr("a step took 2 s"), HasSubstr("the step 2 s, 100 %")));
}

}  // namespace
}  // namespace kedge::cli
