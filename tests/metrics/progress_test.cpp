#include "kedge/metrics/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kedge {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

TEST(FormatDuration, ShowsTheTwoLargestUnits) {
  EXPECT_EQ(format_duration(0), "0s");
  EXPECT_EQ(format_duration(59.4), "59s");
  EXPECT_EQ(format_duration(59.6), "1m00s");
  EXPECT_EQ(format_duration(192), "3m12s");
  EXPECT_EQ(format_duration(3599.6), "1h00m");
  EXPECT_EQ(format_duration(2 * 3600 + 5 * 60 + 59), "2h05m");
  EXPECT_EQ(format_duration(3 * 86400 + 4 * 3600), "3d04h");
}

TEST(FormatDuration, WhatIsNoDurationIsAQuestionMark) {
  EXPECT_EQ(format_duration(-1), "?");
  EXPECT_EQ(format_duration(kForever), "?");
  EXPECT_EQ(format_duration(std::nan("")), "?");
}

TEST(FormatNumber, ShowsFourDigits) {
  EXPECT_EQ(format_number(1.23449), "1.234");
  EXPECT_EQ(format_number(0.56), "0.56");
  EXPECT_EQ(format_number(-0.0123456), "-0.01235");
  EXPECT_EQ(format_number(1e-6), "1e-6");
  EXPECT_EQ(format_number(1.23456e-10), "1.235e-10");
  EXPECT_EQ(format_number(1.5e20), "1.5e+20");
}

TEST(FormatNumber, ShowsAllOfAWholeOrLargeNumber) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(-0.0), "0");
  EXPECT_EQ(format_number(123456), "123456");
  EXPECT_EQ(format_number(9999.4), "9999");
  EXPECT_EQ(format_number(9999.6), "10000");
  EXPECT_EQ(format_number(-12345.67), "-12346");
  EXPECT_EQ(format_number(1e9), "1e+9");
}

TEST(FormatNumber, NamesWhatIsNotFinite) {
  EXPECT_EQ(format_number(std::nan("")), "nan");
  EXPECT_EQ(format_number(kForever), "inf");
  EXPECT_EQ(format_number(-kForever), "-inf");
}

TEST(FormatRate, CountsWhateverIsAboveOne) {
  EXPECT_EQ(format_rate(2.54), "2.5 steps/s");
  EXPECT_EQ(format_rate(1), "1 steps/s");
  EXPECT_EQ(format_rate(0.25), "4 s/step");
  EXPECT_EQ(format_rate(0.3), "3.3 s/step");
}

TEST(FormatBar, FillsFromTheLeft) {
  EXPECT_EQ(format_bar(0, 12, false), "[          ]");
  EXPECT_EQ(format_bar(0.05, 12, false), "[          ]");
  EXPECT_EQ(format_bar(0.5, 12, false), "[====>     ]");
  EXPECT_EQ(format_bar(1, 12, false), "[==========]");
  EXPECT_EQ(format_bar(0, 6, true), "│    │");
  EXPECT_EQ(format_bar(0.5, 6, true), "│██  │");
  EXPECT_EQ(format_bar(1, 6, true), "│████│");
}

TEST(FormatBar, CountsEighthsOfAColumn) {
  EXPECT_EQ(format_bar(1.0 / 32, 6, true), "│▏   │");
  EXPECT_EQ(format_bar(12.0 / 32, 6, true), "│█▌  │");
  EXPECT_EQ(format_bar(31.0 / 32, 6, true), "│███▉│");
}

ProgressView a_view() {
  return {.title = "step", .done = 12, .total = 100, .elapsed_s = 42, .steps_per_s = 0.25, .numbers = {{"loss", 1.2344}, {"reward", 0.56}}};
}

TEST(FormatProgressLine, HasCountsNumbersAndTheTimeToGo) {
  EXPECT_EQ(format_progress_line(a_view()), "step 12/100  loss 1.234  reward 0.56  eta 5m52s");  // 88 steps of 4 s
}

TEST(FormatProgressLine, SaysWhatItKnows) {
  EXPECT_EQ(format_progress_line({.title = "step", .done = 0, .total = 100}), "step 0/100");
  EXPECT_EQ(format_progress_line({.title = "step", .done = 12, .steps_per_s = 2}), "step 12");
  EXPECT_EQ(format_progress_line({.title = "step", .done = 9, .total = 9, .elapsed_s = 61, .steps_per_s = 2}), "step 9/9  in 1m01s");
  EXPECT_EQ(format_progress_line({.title = "step", .done = 0, .total = 0}), "step 0/0  in 0s");
}

TEST(FormatProgressBar, UsesTheWholeLine) {
  EXPECT_EQ(format_progress_bar(a_view(), 200, false),
            "step  12/100  12% [==>                           ]  42s  eta 5m52s  4 s/step  loss 1.234  reward 0.56");
  EXPECT_EQ(format_progress_bar(a_view(), 85, true),
            "step  12/100  12% │█▋            │  42s  eta 5m52s  4 s/step  loss 1.234  reward 0.56");
}

TEST(FormatProgressBar, LeavesOutWhatDoesNotFit) {
  const auto at = [](int columns) { return format_progress_bar(a_view(), columns, false); };
  EXPECT_EQ(at(81), "step  12/100  12% [>         ]  42s  eta 5m52s  4 s/step  loss 1.234  reward 0.56");
  EXPECT_EQ(at(80), "step  12/100  12% [=>                 ]  42s  eta 5m52s  loss 1.234  reward 0.56");
  EXPECT_EQ(at(70), "step  12/100  12% [>             ]  eta 5m52s  loss 1.234  reward 0.56");
  EXPECT_EQ(at(60), "step  12/100  12% [=>               ]  eta 5m52s  loss 1.234");
  EXPECT_EQ(at(45), "step  12/100  12% [>             ]  eta 5m52s");
  EXPECT_EQ(at(35), "step  12/100  12% [>              ]");
  EXPECT_EQ(at(20), "step  12/100  12%");
  EXPECT_EQ(at(15), " 12/100  12%");
  EXPECT_EQ(at(7), " 12/100");
  EXPECT_EQ(at(0), "");
}

TEST(FormatProgressBar, IsNeverWiderThanItsColumns) {
  ProgressView view = a_view();
  view.title = "Schritt für Schritt";
  for (int columns = 0; columns < 130; ++columns) {
    const std::string text = format_progress_bar(view, columns, true);
    const auto width = std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
    EXPECT_LE(width, columns) << text;
  }
}

TEST(FormatProgressBar, WithoutATotalThereIsNoBar) {
  EXPECT_EQ(format_progress_bar({.title = "step", .done = 12, .elapsed_s = 42, .steps_per_s = 3, .numbers = {{"loss", 1}}}, 80, true),
            "step 12  42s  3 steps/s  loss 1");
}

TEST(FormatProgressBar, IsFullOnlyAtTheEnd) {
  EXPECT_EQ(format_progress_bar({.title = "step", .done = 999, .total = 1000}, 32, false), "step  999/1000  99% [========> ]");
  EXPECT_EQ(format_progress_bar({.title = "step", .done = 1000, .total = 1000}, 36, false), "step 1000/1000 100% [==========]  0s");
  EXPECT_EQ(format_progress_bar({.title = "step", .done = 0, .total = 0}, 30, false), "step 0/0 100% [==========]  0s");
}

TEST(RateMeter, CountsFromTheFirstUpdateOnly) {
  RateMeter meter;
  EXPECT_EQ(meter.steps_per_s(), 0);
  EXPECT_EQ(meter.elapsed_s(5), 0);
  meter.update(40, 1000);  // resumed at step 40
  EXPECT_EQ(meter.steps_per_s(), 0);
  meter.update(42, 1004);
  EXPECT_EQ(meter.steps_per_s(), 0.5);
  EXPECT_EQ(meter.elapsed_s(1010), 10);
}

TEST(RateMeter, ForgetsOldStepsByATenthAnUpdate) {
  RateMeter meter;
  meter.update(0, 0);
  meter.update(1, 100);  // a slow first step
  meter.update(2, 110);
  // One step decayed to 0.9 and 100 s to 90 s, then 1 step and 10 s more.
  EXPECT_DOUBLE_EQ(meter.steps_per_s(), 1.9 / 100);
  for (int64_t step = 3; step < 100; ++step) meter.update(step, 90 + 10 * static_cast<double>(step));
  EXPECT_NEAR(meter.steps_per_s(), 0.1, 1e-4);  // 97 updates later 0.9^97 = 4e-5 of the slow step is left
}

TEST(RateMeter, ManyQuickUpdatesAreSmoothedOver30Seconds) {
  RateMeter meter;
  meter.update(0, 0);
  for (int64_t step = 1; step <= 1000; ++step) meter.update(step, 0.01 * static_cast<double>(step));
  const double before = meter.steps_per_s();
  EXPECT_NEAR(before, 100, 1e-6);
  meter.update(1001, 10.5);  // one slow step of 0.5 s among ten seconds of quick ones
  EXPECT_GT(meter.steps_per_s(), 90);
}

TEST(RateMeter, StartsAgainWhenTheWorkDoes) {
  RateMeter meter;
  meter.update(0, 0);
  meter.update(10, 1);
  meter.update(0, 50);  // the next validation
  EXPECT_EQ(meter.steps_per_s(), 0);
  EXPECT_EQ(meter.elapsed_s(51), 1);
}

TEST(Utf8Locale, TheFirstVariableThatIsSetDecides) {
  EXPECT_TRUE(is_utf8_locale(nullptr, nullptr, "de_DE.UTF-8"));
  EXPECT_TRUE(is_utf8_locale("", "C.utf8", "C"));
  EXPECT_FALSE(is_utf8_locale("C", nullptr, "en_GB.UTF-8"));
  EXPECT_FALSE(is_utf8_locale(nullptr, "de_DE.ISO-8859-1", "en_GB.UTF-8"));
  EXPECT_FALSE(is_utf8_locale(nullptr, "", nullptr));
}

}  // namespace
}  // namespace kedge
