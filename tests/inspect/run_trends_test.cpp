#include "kedge/inspect/run_trends.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kedge {
namespace {

// Values at steps 0, 1, 2, ...
Series trend_series(const std::vector<double>& values) {
  Series series{.name = "number"};
  for (size_t i = 0; i < values.size(); ++i) series.add(static_cast<int64_t>(i), values[i]);
  return series;
}

// Noise that looks random and is the same every time: the mean of four uniform numbers, of variance 1/48, times sqrt(48) deviations.
class Noise {
 public:
  double operator()(double deviation) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) {
      state_ = state_ * 6364136223846793005U + 1442695040888963407U;
      sum += static_cast<double>(state_ >> 11U) / 9007199254740992.0 - 0.5;
    }
    return deviation * sum / 4 * std::sqrt(48.0);
  }

 private:
  uint64_t state_ = 1;
};

// Values of a function of the step, with noise on top.
template <typename Function>
Series noisy(size_t size, double deviation, const Function& function) {
  Noise noise;
  std::vector<double> values;
  for (size_t i = 0; i < size; ++i) values.push_back(function(static_cast<double>(i)) + noise(deviation));
  return trend_series(values);
}

TEST(RunTrends, TheEndsAreMeansOfATenth) {
  std::vector<double> values(20, 5.0);
  values[0] = 1;
  values[1] = 2;
  values[18] = 8;
  values[19] = 10;
  const Ends ends = *ends_of(trend_series(values));
  EXPECT_EQ(ends.first, 1.5);
  EXPECT_EQ(ends.last, 9);
  EXPECT_EQ(ends_of(trend_series({3, 4, 5}))->first, 3);  // one at least
  EXPECT_EQ(ends_of(trend_series({NAN, 4, 5}))->first, 4);
  EXPECT_FALSE(ends_of(trend_series({NAN})).has_value());
  EXPECT_FALSE(ends_of(Series{}).has_value());
}

TEST(RunTrends, TheBestPoint) {
  EXPECT_EQ(best_of(trend_series({1, 5, 2, 5, NAN}), Wanted::high)->step, 1);
  EXPECT_EQ(best_of(trend_series({3, 1, 2}), Wanted::low)->step, 1);
  EXPECT_EQ(best_of(trend_series({3, 1, 2}), Wanted::any)->step, 2);
  EXPECT_FALSE(best_of({}, Wanted::low).has_value());
}

// The estimate from some hundred numbers is within a quarter of the truth, with a trend as without.
TEST(RunTrends, NoiseIsMeasuredWhateverTheTrend) {
  EXPECT_NEAR(noise_of(noisy(500, 2.0, [](double) { return 0; })), 2.0, 0.5);
  EXPECT_NEAR(noise_of(noisy(500, 2.0, [](double step) { return 10 * step; })), 2.0, 0.5);
  EXPECT_NEAR(noise_of(trend_series({1, 2, 3, 4, 5, 6})), 0, 1e-12);
  EXPECT_EQ(noise_of(trend_series({1, 9, 1})), 0);
}

TEST(RunTrends, AChangeWithinTheNoiseIsNone) {
  EXPECT_EQ(change_of(noisy(100, 1.0, [](double) { return 3; })), Change::none);
  EXPECT_EQ(change_of(noisy(100, 1.0, [](double step) { return 0.1 * step; })), Change::rose);
  EXPECT_EQ(change_of(noisy(100, 1.0, [](double step) { return -0.1 * step; })), Change::fell);
  EXPECT_EQ(change_of(trend_series({1, 1, 1})), Change::none);
  EXPECT_EQ(change_of(trend_series({1})), Change::none);
}

// Rises to step 60, falls from there on.
TEST(RunTrends, ATurnIsFoundNearWhereItWas) {
  const auto tent = [](double step) { return step < 60 ? step / 10 : 6 - (step - 60) / 5; };
  const std::optional<Turn> turn = turn_of(noisy(100, 0.3, tent), Wanted::high);
  ASSERT_TRUE(turn.has_value());
  EXPECT_GT(turn->step, 60);
  EXPECT_LE(turn->step, 70);
  EXPECT_NEAR(static_cast<double>(turn->best_step), 60, 6);
  EXPECT_NEAR(turn->best, 6, 0.7);
  EXPECT_NEAR(turn->last, -0.9, 0.7);
  // The same upside down is a loss that turns.
  EXPECT_EQ(turn_of(noisy(100, 0.3, [&](double step) { return -tent(step); }), Wanted::low).has_value(), true);
}

TEST(RunTrends, WhatRisesOrStaysHasNoTurn) {
  EXPECT_FALSE(turn_of(noisy(100, 0.5, [](double step) { return step / 10; }), Wanted::high).has_value());
  EXPECT_FALSE(turn_of(noisy(100, 0.5, [](double step) { return 5 * (1 - std::exp(-step / 20)); }), Wanted::high).has_value());
  for (const size_t size : {8U, 20U, 50U, 200U, 1000U})
    EXPECT_FALSE(turn_of(noisy(size, 1.0, [](double) { return 2; }), Wanted::high).has_value()) << size;
  EXPECT_FALSE(turn_of(trend_series(std::vector<double>(50, 1.0)), Wanted::low).has_value());
}

// Each number is 0.6 of the one before and 0.8 of something new. By single numbers alone about a third of such series would seem to turn;
// tried on a thousand, one in a hundred does.
TEST(RunTrends, WhatWandersHardlyEverTurns) {
  Noise noise;
  int num_turns = 0;
  for (int i = 0; i < 50; ++i) {
    std::vector<double> values = {0};
    while (values.size() < 80) values.push_back(0.6 * values.back() + noise(0.8));
    num_turns += turn_of(trend_series(values), Wanted::high).has_value() ? 1 : 0;
  }
  EXPECT_LE(num_turns, 4);
}

TEST(RunTrends, ADipThatIsMadeUpForIsNoTurn) {
  const auto dip = [](double step) { return step > 40 && step < 60 ? 2.0 : 6.0; };
  EXPECT_FALSE(turn_of(noisy(100, 0.2, dip), Wanted::high).has_value());
}

TEST(RunTrends, FewNumbersTellNoTurn) { EXPECT_FALSE(turn_of(trend_series({1, 2, 3, 2, 1, 0, -1}), Wanted::high).has_value()); }

TEST(RunTrends, ATurnWithoutNoiseMustBeWorthMentioning) {
  std::vector<double> loss;
  for (int i = 0; i < 40; ++i) loss.push_back(i < 30 ? 3 - 0.1 * i : 0.1 + 0.0001 * (i - 29));
  EXPECT_FALSE(turn_of(trend_series(loss), Wanted::low).has_value());
  for (int i = 30; i < 40; ++i) loss[static_cast<size_t>(i)] = 0.1 + 0.1 * (i - 29);
  EXPECT_TRUE(turn_of(trend_series(loss), Wanted::low).has_value());
}

TEST(RunTrends, WhatStaysAboveALimit) {
  const Series kl = noisy(100, 0.05, [](double step) { return step < 50 ? 0.1 : 3.0; });
  EXPECT_NEAR(static_cast<double>(*stays_above(kl, 2)), 50, 6);
  EXPECT_FALSE(stays_above(kl, 4).has_value());
  EXPECT_EQ(stays_above(kl, -1), std::optional<int64_t>(5));  // from the middle of the first window of eleven
  EXPECT_NEAR(static_cast<double>(*stays_below(noisy(100, 0.05, [](double step) { return step < 50 ? 3.0 : 0.1; }), 1)), 50, 6);
  EXPECT_EQ(stays_above(trend_series({1, 3, 1, 3, 3}), 2), std::optional<int64_t>(3));  // so few are not smoothed
}

TEST(RunTrends, TheFirstThatIsNotFinite) {
  EXPECT_EQ(first_not_finite(trend_series({1, INFINITY, NAN})), std::optional<int64_t>(1));
  EXPECT_FALSE(first_not_finite(trend_series({1, 2})).has_value());
}

TEST(RunTrends, TheSparklineIsLowWhereNumbersAre) {
  EXPECT_EQ(sparkline(trend_series({0, 1, 2, 3, 4, 5, 6, 7}), 20, true), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline(trend_series({7, 0, 7}), 20, false), "#_#");
  EXPECT_EQ(sparkline(trend_series({0, 0, 7, 7}), 2, false), "_#");
  EXPECT_EQ(sparkline(trend_series({0, NAN, 7}), 20, false), "_!#");
  EXPECT_EQ(sparkline(trend_series({3, 3}), 20, false), "==");
  EXPECT_EQ(sparkline({}, 20, true), "");
}

}  // namespace
}  // namespace kedge
