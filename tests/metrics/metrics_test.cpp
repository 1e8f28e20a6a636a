#include "kedge/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kedge/core/error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

TEST(Metrics, KeepTheOrderInWhichNamesWereFirstSet) {
  Metrics metrics{{"loss", 1.0}, {"lr", 0.5}};
  metrics.set("grad_norm", 2.0);
  metrics.set("loss", 3.0);
  EXPECT_THAT(metrics, ElementsAre(Pair("loss", 3.0), Pair("lr", 0.5), Pair("grad_norm", 2.0)));
  EXPECT_EQ(metrics.size(), 3U);
}

TEST(Metrics, MergeAddsNewNamesAndReplacesOldOnes) {
  Metrics metrics{{"a", 1}, {"b", 2}};
  metrics.merge({{"b", 3}, {"c", 4}});
  EXPECT_THAT(metrics, ElementsAre(Pair("a", 1.0), Pair("b", 3.0), Pair("c", 4.0)));
}

TEST(Metrics, APrefixGoesBeforeEveryName) {
  const Metrics metrics = Metrics{{"rewards", 1}, {"epoch", 2}}.with_prefix("train_rollouts/");
  EXPECT_THAT(metrics, ElementsAre(Pair("train_rollouts/rewards", 1.0), Pair("train_rollouts/epoch", 2.0)));
}

TEST(Metrics, FindTellsAbsenceFromZero) {
  const Metrics metrics{{"zero", 0}};
  EXPECT_EQ(metrics.find("zero"), std::optional(0.0));
  EXPECT_EQ(metrics.find("none"), std::nullopt);
  EXPECT_TRUE(Metrics().empty());
}

// Writes down what it is given, and fails when told to.
class Recorder : public Sink {
 public:
  Recorder(std::vector<std::string>& calls, const bool& fails) : calls_(calls), fails_(fails) {}
  void write(int64_t step, const Metrics& metrics) override {
    if (fails_) throw Error("disk full");
    calls_.push_back(str("write ", step, " ", metrics.size()));
  }
  void write_samples(int64_t step, const SampleTable& table) override { calls_.push_back(str("samples ", step, " ", table.name)); }
  void report(const Progress& progress) override { calls_.push_back(str(progress.title, " ", progress.done, "/", progress.total)); }
  void flush() override { calls_.emplace_back("flush"); }
  void record(SinkPositions& positions) const override { positions["recorder"] = 7; }
  void resume(int64_t step, const SinkPositions& positions) override {
    if (fails_) throw UsageError("changed since the checkpoint");
    calls_.push_back(str("resume ", step, " ", positions.at("recorder")));
  }

 private:
  std::vector<std::string>& calls_;
  const bool& fails_;
};

class BrokenSink : public Sink {
 public:
  void write(int64_t, const Metrics&) override { throw Bug("a mistake of ours"); }
};

struct TwoSinks {
  std::vector<std::string> first, second;
  bool first_fails = false, second_fails = false;
  MetricsLog log;

  explicit TwoSinks(bool writes = true) : log(writes) {
    log.add<Recorder>(first, first_fails);
    log.add<Recorder>(second, second_fails);
  }
};

TEST(MetricsLog, HandsEverythingToEverySink) {
  TwoSinks sinks;
  sinks.log.resume(3, {{"recorder", 7}});
  sinks.log.report({.title = "Training steps", .done = 3, .total = 10});
  sinks.log.write(3, {{"a", 1}, {"b", 2}});
  sinks.log.write_samples(3, {.name = "train_rollouts", .rows = {}});
  EXPECT_EQ(sinks.log.positions(), (SinkPositions{{"recorder", 7}}));
  EXPECT_THAT(sinks.first, ElementsAre("resume 3 7", "Training steps 3/10", "write 3 2", "samples 3 train_rollouts", "flush"));
  EXPECT_EQ(sinks.first, sinks.second);
}

TEST(MetricsLog, MakesNoSinksOnRanksThatDoNotWrite) {
  TwoSinks sinks(/*writes=*/false);
  sinks.first_fails = true;
  sinks.log.resume(3, {});
  sinks.log.write(1, {{"a", 1}});
  EXPECT_TRUE(sinks.log.positions().empty());
  EXPECT_TRUE(sinks.first.empty());
}

TEST(MetricsLog, ASinkThatFailsWarnsIsTriedAgainAndDoesNotStopTheOthers) {
  TwoSinks sinks;
  ::testing::internal::CaptureStderr();
  sinks.first_fails = true;
  sinks.log.write(0, {{"a", 1}});
  sinks.log.report({.done = 1});  // succeeds, but says nothing about writing
  const std::string at_first = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(at_first, HasSubstr("METRICS ARE BEING LOST: disk full (failure 1;"));
  EXPECT_THAT(at_first, Not(HasSubstr("again,")));

  ::testing::internal::CaptureStderr();
  sinks.first_fails = false;
  sinks.log.write(1, {{"a", 1}});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("metrics are written again, after 1 failure\n"));
  EXPECT_THAT(sinks.first, ElementsAre("step 1/-1", "write 1 1"));
  EXPECT_THAT(sinks.second, ElementsAre("write 0 1", "step 1/-1", "write 1 1"));
}

TEST(MetricsLog, AFailureThatLastsIsToldRarely) {
  TwoSinks sinks;
  sinks.first_fails = true;
  ::testing::internal::CaptureStderr();
  for (int step = 0; step < 100; ++step) sinks.log.write(step, {{"a", 1}});
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7);  // failures 1, 2, 4, 8, 16, 32, 64
}

TEST(MetricsLog, ABugAndABadResumeAreNotSwallowed) {
  MetricsLog log(true);
  log.add<BrokenSink>();
  EXPECT_THROW(log.write(0, {{"a", 1}}), Bug);
  TwoSinks sinks;
  sinks.second_fails = true;
  EXPECT_THROW(sinks.log.resume(3, {{"recorder", 7}}), UsageError);
}

TEST(Metrics, TheWallClockCountsSecondsSince1970) {
  EXPECT_GT(seconds_since_epoch(), 1.7e9);   // November 2023
  EXPECT_LT(seconds_since_epoch(), 1.0e10);  // a unit other than seconds
}

}  // namespace
}  // namespace kedge
