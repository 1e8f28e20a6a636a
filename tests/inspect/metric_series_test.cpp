#include "kedge/inspect/metric_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;
using ::testing::SizeIs;

class MetricsFeedTest : public ::testing::Test {
 protected:
  void append(const std::string& text) const { std::ofstream(file_, std::ios::app) << text; }
  void write(const std::string& text) const { std::ofstream(file_) << text; }

  testing::TempFolder folder_;
  Path file_ = folder_.path() / "metrics.jsonl";
  MetricsFeed feed_{file_};
};

TEST_F(MetricsFeedTest, ReadsWhatIsAddedAndNothingTwice) {
  EXPECT_FALSE(feed_.update());  // no file yet
  append("{\"step\": 0, \"time\": 10, \"a\": 1}\n{\"step\": 1, \"time\": 11.5, \"a\": 2, \"b\": 5}\n");
  EXPECT_TRUE(feed_.update());
  EXPECT_FALSE(feed_.update());
  ASSERT_NE(feed_.find("a"), nullptr);
  EXPECT_THAT(feed_.find("a")->steps, ElementsAre(0, 1));
  append("{\"step\": 2, \"time\": 12, \"a\": 3}\n");
  const int64_t version = feed_.version();
  EXPECT_TRUE(feed_.update());
  EXPECT_NE(feed_.version(), version);
  EXPECT_THAT(feed_.find("a")->values, ElementsAre(1, 2, 3));
  EXPECT_THAT(feed_.find("b")->steps, ElementsAre(1));
  EXPECT_EQ(feed_.find("c"), nullptr);
  EXPECT_EQ(feed_.first_time(), 10);
  EXPECT_EQ(feed_.last_time(), 12);
}

TEST_F(MetricsFeedTest, ALineThatIsBeingWrittenWaitsForItsEnd) {
  append("{\"step\": 0, \"time\": 10, \"a\": 1}\n{\"step\": 1, \"ti");
  EXPECT_TRUE(feed_.update());
  EXPECT_THAT(feed_.find("a")->values, SizeIs(1));
  EXPECT_EQ(feed_.num_bad_lines(), 0);
  append("me\": 11, \"a\": 2}");
  EXPECT_FALSE(feed_.update());
  append("\n");
  EXPECT_TRUE(feed_.update());
  EXPECT_THAT(feed_.find("a")->values, ElementsAre(1, 2));
  EXPECT_EQ(feed_.num_bad_lines(), 0);
}

TEST_F(MetricsFeedTest, NumbersThatJsonLacksAreKept) {
  append("{\"step\": 0, \"time\": 1, \"a\": \"NaN\", \"b\": \"-Infinity\", \"c\": null}\n");
  EXPECT_TRUE(feed_.update());
  EXPECT_THAT(feed_.find("a")->values, ElementsAre(IsNan()));
  EXPECT_EQ(feed_.find("b")->values[0], -INFINITY);
  EXPECT_THAT(feed_.find("c")->values, ElementsAre(IsNan()));
}

TEST_F(MetricsFeedTest, LinesThatAreNoMetricsArePassedOverAndCounted) {
  append(
      "{\"step\": 0, \"time\": 1, \"a\": 1}\n"
      "not JSON\n\n[]\n{\"time\": 1, \"a\": 2}\n{\"step\": 1.5, \"time\": 1}\n{\"step\": 1, \"time\": 1, \"x\": \"text\"}\n\xff\n"
      "{\"step\": 2, \"time\": 1, \"a\": 3}\n");
  EXPECT_TRUE(feed_.update());
  EXPECT_THAT(feed_.find("a")->values, ElementsAre(1, 3));
  EXPECT_EQ(feed_.num_bad_lines(), 7);
  EXPECT_THAT(feed_.first_bad_line(), HasSubstr("metrics.jsonl:2"));
}

TEST_F(MetricsFeedTest, StepsThatNoRunCountsToArePassedOver) {
  append(
      "{\"step\": 9223372036854775807, \"time\": 1, \"a\": 1}\n{\"step\": -1, \"time\": 1, \"a\": 2}\n"
      "{\"step\": 9007199254740992, \"time\": 1, \"a\": 3}\n");
  EXPECT_TRUE(feed_.update());
  EXPECT_THAT(feed_.find("a")->values, ElementsAre(3));
  EXPECT_EQ(feed_.num_bad_lines(), 2);
  EXPECT_EQ(feed_.first_bad_line(), "metrics.jsonl:1: step: expected an integer from 0 to 9007199254740992, found 9223372036854775807");
}

TEST_F(MetricsFeedTest, AFileThatWasCutBackOrReplacedIsReadAnew) {
  const std::string first = "{\"step\": 0, \"time\": 1, \"a\": 1}\n";
  append(first + "{\"step\": 1, \"time\": 2, \"a\": 2}\n");
  EXPECT_TRUE(feed_.update());
  write(first);
  EXPECT_TRUE(feed_.update());
  EXPECT_THAT(feed_.find("a")->values, ElementsAre(1));
  // Cut back and grown past where it was between two looks.
  append("{\"step\": 1, \"time\": 3, \"a\": 7}\n");
  EXPECT_TRUE(feed_.update());
  write(first + "{\"step\": 1, \"time\": 4, \"a\": 8}\n{\"step\": 2, \"time\": 5, \"a\": 9}\n");
  EXPECT_TRUE(feed_.update());
  EXPECT_THAT(feed_.find("a")->values, ElementsAre(1, 8, 9));
  std::filesystem::remove(file_);
  EXPECT_TRUE(feed_.update());
  EXPECT_TRUE(feed_.series().empty());
  EXPECT_FALSE(feed_.update());
}

TEST_F(MetricsFeedTest, AFileOfManyPiecesIsReadWhole) {
  std::string text;
  const std::string filler(1000, 'x');
  for (int step = 0; step < 12000; ++step)
    text += "{\"step\": " + std::to_string(step) + ", \"time\": 1, \"" + filler + "\": " + std::to_string(step) + "}\n";
  append(text);
  EXPECT_TRUE(feed_.update());
  ASSERT_NE(feed_.find(filler), nullptr);
  EXPECT_EQ(feed_.find(filler)->steps.size(), 12000U);
  EXPECT_EQ(feed_.find(filler)->values.back(), 11999);
}

Series series_of(const std::vector<double>& values) {
  Series series{.name = "a"};
  for (size_t i = 0; i < values.size(); ++i) series.add(static_cast<int64_t>(i), values[i]);
  return series;
}

TEST(ReducedSeries, ShortOnesStayAsTheyAre) {
  const ReducedSeries result = reduced(series_of({3, NAN, 5}), {.max_points = 3});
  EXPECT_THAT(result.x, ElementsAre(0, 1, 2));
  EXPECT_THAT(result.y, ElementsAre(3, IsNan(), 5));
  EXPECT_TRUE(result.smooth.empty());
  EXPECT_TRUE(reduced(series_of({}), {}).x.empty());
}

TEST(ReducedSeries, LongOnesKeepTheirExtremesAndTheirEnds) {
  std::vector<double> values(100000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i) / 1000);
  values[45678] = 99;
  values[56789] = -99;
  values[70001] = NAN;
  const ReducedSeries result = reduced(series_of(values), {.max_points = 600});
  EXPECT_EQ(result.num_points, 100000U);
  EXPECT_LE(result.x.size(), 620U);
  EXPECT_THAT(result.y, ::testing::Contains(99));
  EXPECT_THAT(result.y, ::testing::Contains(-99));
  EXPECT_THAT(result.x, ::testing::Contains(70001));
  EXPECT_EQ(result.x.front(), 0);
  EXPECT_EQ(result.x.back(), 99999);
  EXPECT_TRUE(std::is_sorted(result.x.begin(), result.x.end()));
}

TEST(ReducedSeries, UpdatesOfAStepLieBetweenItAndTheNext) {
  Series series{.name = "a"};
  for (const int64_t step : {0, 0, 1, 1, 1, 1, 2}) series.add(step, 1);
  EXPECT_THAT(reduced(series, {}).x, ElementsAre(0, 0.5, 1, 1.25, 1.5, 1.75, 2));
}

TEST(ReducedSeries, SmoothingWeighsWhatCameBefore) {
  // By hand, of weight 1/2: 1; (1/2 + 4) / (3/2) = 3; and on over the gap.
  const ReducedSeries result = reduced(series_of({1, 4, NAN, 4}), {.smoothing = 0.5});
  EXPECT_THAT(result.smooth, ElementsAre(1, 3, 3, DoubleNear((0.25 + 2 + 4) / 1.75, 1e-12)));
  EXPECT_THAT(reduced(series_of({NAN, 2}), {.smoothing = 0.5}).smooth, ElementsAre(IsNan(), 2));
}

TEST(MeanBetween, LooksAtFiniteNumbersOfTheseSteps) {
  const Series series = series_of({1, 2, NAN, 6, 100});
  EXPECT_EQ(mean_between(series, 1, 4), 4);
  EXPECT_THAT(mean_between(series, 2, 3), IsNan());
  EXPECT_THAT(mean_between(series, 7, 9), IsNan());
}

}  // namespace
}  // namespace kedge
