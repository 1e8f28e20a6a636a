#include "kedge/metrics/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct ConsoleTest : ::testing::Test {
  double now = 100;
  int columns = 61;
  std::vector<std::string> bars, lines;

  std::unique_ptr<ConsoleSink> console(bool is_terminal, ConsoleOptions options = {}) {
    return std::make_unique<ConsoleSink>(std::move(options), Screen{.is_terminal = is_terminal,
                                                                    .is_utf8 = false,
                                                                    .columns = [this] { return columns; },
                                                                    .set_bar = [this](std::string_view text) { bars.emplace_back(text); },
                                                                    .add_line = [this](std::string_view text) { lines.emplace_back(text); },
                                                                    .clock = [this] { return now; }});
  }
};

TEST_F(ConsoleTest, ATerminalHasABarThatFitsAndAtTheEndALine) {
  auto sink = console(true);
  sink->report({.done = 0, .total = 4});
  now += 2;
  sink->write(0, {{"train_optim/loss", 0.5}});
  now += 2;
  sink->report({.done = 1, .total = 4});
  EXPECT_THAT(bars, ElementsAre("step 0/4   0% [                              ]  0s",  //
                                "step 0/4   0% [                              ]  2s  loss 0.5",
                                "step 1/4  25% [=>         ]  4s  eta 12s  4 s/step  loss 0.5"));
  columns = 40;
  now += 2;
  sink->report({.done = 2, .total = 4});
  EXPECT_EQ(bars.back(), "step 2/4  50% [======>        ]  eta 6s");
  EXPECT_THAT(lines, IsEmpty());
  sink.reset();
  EXPECT_EQ(bars.back(), "");
  EXPECT_THAT(lines, ElementsAre("step 2/4  loss 0.5  eta 6s"));
}

TEST_F(ConsoleTest, TheBarIsDrawnAtMostTenTimesASecondButItsEndAlways) {
  auto sink = console(true);
  for (int64_t done = 0; done <= 1000; ++done, now += 0.001) sink->report({.done = done, .total = 1000});
  EXPECT_GE(bars.size(), 9U);
  EXPECT_LE(bars.size(), 11U);
  EXPECT_THAT(bars.back(), ::testing::StartsWith("step 1000/1000 100% [==="));
}

TEST_F(ConsoleTest, ElsewhereThereArePlainLinesAtABoundedRateAndTheEndAlways) {
  auto sink = console(false);
  for (int64_t done = 40; done <= 100; ++done, now += 1) {  // a resumed run
    if (done > 40) sink->write(done - 1, {{"train_rollouts/rewards", 0.5}, {"timers/generate", 1}});
    sink->report({.title = "PPO Global Step", .done = done, .total = 100});
  }
  ASSERT_EQ(lines.size(), 13U);  // one every five of 60 seconds, and the first
  EXPECT_EQ(lines[0], "PPO Global Step 40/100");
  EXPECT_EQ(lines[1], "PPO Global Step 45/100  rewards 0.5  eta 55s");
  EXPECT_EQ(lines[12], "PPO Global Step 100/100  rewards 0.5  in 1m00s");
  sink.reset();
  EXPECT_EQ(lines.size(), 13U);
  EXPECT_THAT(bars, IsEmpty());
}

TEST_F(ConsoleTest, ARunThatStopsBetweenTwoLinesStillSaysHowFarItCame) {
  auto sink = console(false);
  sink->report({.done = 0, .total = 100});
  now += 1;
  sink->report({.done = 1, .total = 100});
  sink.reset();
  EXPECT_THAT(lines, ElementsAre("step 0/100", "step 1/100  eta 1m39s"));
}

TEST_F(ConsoleTest, ShowsTheWorkReportedLastAndEndsWithTheFirst) {
  auto sink = console(true);
  sink->report({.title = "Training steps", .done = 0, .total = 2});
  now += 10;
  sink->report({.title = "Training steps", .done = 1, .total = 2});
  now += 1;
  sink->report({.title = "Validation steps", .done = 0, .total = 3});
  EXPECT_EQ(bars.back(), "Validation steps 0/3   0% [                            ]  0s");
  now += 4;
  sink->write(1, {{"val/loss", 1}});
  EXPECT_EQ(bars.back(), "Validation steps 0/3   0% [                    ]  4s  loss 1");
  now += 5;
  sink->report({.title = "Training steps", .done = 2, .total = 2});
  EXPECT_EQ(bars.back(), "Training steps 2/2 100% [==========]  20s  10 s/step  loss 1");
  sink.reset();
  EXPECT_THAT(lines, ElementsAre("Training steps 2/2  loss 1  in 20s"));
}

TEST_F(ConsoleTest, WithoutReportsTheStepsThatAreWrittenCount) {
  auto sink = console(false);
  sink->write(3, {{"loss", 1}});
  now += 6;
  sink->write(5, {{"loss", 2}});
  now += 6;
  sink->report({.title = "Training steps", .done = 6, .total = 9});
  EXPECT_THAT(lines, ElementsAre("step 3  loss 1", "step 5  loss 2", "Training steps 6/9  loss 2"));
}

TEST_F(ConsoleTest, ShowsTheNumbersAskedForByTheirShortNames) {
  auto sink = console(false, {.keys = {"val/loss", "train/loss", "none", "train/reward", "train/kl"}, .max_numbers = 3});
  sink->write(1, {{"train/lr", 9}, {"train/loss", 1}, {"train/kl", 8}, {"val/loss", 2}, {"train/reward", 3}});
  EXPECT_THAT(lines, ElementsAre("step 1  val/loss 2  train/loss 1  reward 3"));
}

TEST_F(ConsoleTest, OtherwiseTheFirstOnesWrittenButNoTimers) {
  auto sink = console(false, {.max_numbers = 2});
  sink->write(1, {{"timers/generate", 9}, {"train/loss", 1}, {"train/kl", 8}, {"train/lr", 3}});
  EXPECT_THAT(lines, ElementsAre("step 1  loss 1  kl 8"));
}

TEST(ConsoleSink, WritesPlainLogLinesWhereThereIsNoTerminal) {
  ::testing::internal::CaptureStderr();
  ConsoleSink().report({.done = 3, .total = 4});
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find(" step 3/4\n"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace kedge
