#include "kedge/metrics/trackers/tracker.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "kedge/core/error.h"
#include "kedge/metrics/jsonl.h"

#include "tests/support/read_metrics.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::read_metrics;

using std::chrono::milliseconds;

// A tracker that outlives its links, as a server does. Keeps a row where `confirms`, otherwise loses all that was not confirmed when the
// link ends.
struct Ledger {
  std::mutex mutex;
  bool is_away = false, confirms = true, resends = true;
  int64_t fails_after = -1;  // calls of send, from now on
  std::vector<TrackerRow> rows;
  std::optional<RunOutcome> outcome;
  int num_connects = 0;

  // name -> step -> values
  std::multiset<std::string> points() {
    const std::lock_guard lock(mutex);
    std::multiset<std::string> all;
    for (const TrackerRow& row : rows)
      for (const auto& [name, value] : row.numbers) all.insert(str(row.step, " ", name, " ", value));
    return all;
  }
  void set_away(bool away) {
    const std::lock_guard lock(mutex);
    is_away = away;
  }
};

class LedgerLink final : public TrackerLink {
 public:
  explicit LedgerLink(Ledger& ledger) : ledger_(ledger) {}
  [[nodiscard]] std::string name() const override { return "the ledger"; }
  std::optional<int64_t> connect(Json& memory, const std::function<void()>& save) override {
    const std::lock_guard lock(ledger_.mutex);
    check_there();
    ++ledger_.num_connects;
    memory.set("id", "abc");
    save();
    if (ledger_.resends) return std::nullopt;
    return last();
  }
  void send(std::span<const TrackerRow> rows) override {
    const std::lock_guard lock(ledger_.mutex);
    check_there();
    for (const TrackerRow& row : rows) {
      const bool is_there = std::any_of(ledger_.rows.begin(), ledger_.rows.end(),
                                        [&](const TrackerRow& other) { return other.time_ms == row.time_ms && other.step == row.step; });
      if (!is_there) ledger_.rows.push_back(row);
    }
    if (ledger_.fails_after >= 0 && ledger_.fails_after-- == 0) throw Error("the answer was lost");
  }
  [[nodiscard]] int64_t last_kept() override {
    const std::lock_guard lock(ledger_.mutex);
    return ledger_.confirms ? last() : -1;
  }
  void finish(RunOutcome end) override {
    const std::lock_guard lock(ledger_.mutex);
    check_there();
    ledger_.outcome = end;
    ledger_.confirms = true;
  }
  void disconnect() override {}
  void abort(bool /*on*/) override {}

 private:
  void check_there() const {
    if (ledger_.is_away) throw Error("is away");
  }
  [[nodiscard]] int64_t last() const { return ledger_.rows.empty() ? -1 : ledger_.rows.back().number; }
  Ledger& ledger_;
};

class Trackers : public ::testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<Tracker> tracker(double wait_s = 10) {
    return std::make_unique<Tracker>(
        TrackerOptions{.file_name = "ledger.json", .folder = folder_.path(), .wait_s = wait_s, .first_pause = milliseconds(5)},
        std::make_unique<LedgerLink>(ledger_));
  }
  [[nodiscard]] MetricsLog log(double wait_s = 10) {
    MetricsLog log(true);
    log.add<TrackerSink>(tracker(wait_s));
    log.add<JsonlSink>(folder_.path());
    return log;
  }
  // What the file has is with the tracker; `more`: it may hold further points.
  void expect_all(bool more = false) {
    std::multiset<std::string> wanted;
    for (const MetricsLine& line : read_metrics(folder_ / "metrics.jsonl"))
      for (const auto& [name, value] : line.metrics) wanted.insert(str(line.step, " ", name, " ", value));
    const std::multiset<std::string> points = ledger_.points();
    if (more) {
      EXPECT_TRUE(std::includes(points.begin(), points.end(), wanted.begin(), wanted.end()));
    } else {
      EXPECT_EQ(points, wanted);
    }
  }

  testing::TempFolder folder_;
  Ledger ledger_;
};

TEST_F(Trackers, ARunEndsWhenItsTrackerHasEveryNumber) {
  {
    MetricsLog log = this->log();
    log.resume(0, {});
    for (int step = 0; step < 50; ++step) log.write(step, {{"loss", 1.0 / (step + 1)}, {"lr", 0.1}});
    log.finish(RunOutcome::killed);
    EXPECT_EQ(ledger_.outcome, RunOutcome::killed);
  }
  EXPECT_EQ(ledger_.outcome, RunOutcome::killed);  // told once
  expect_all();
  EXPECT_EQ(tracker()->num_waiting(), 0);
}

TEST_F(Trackers, OneThatIsAwayCatchesUpWhileTheRunGoesOn) {
  ledger_.is_away = true;
  MetricsLog log = this->log();
  log.resume(0, {});
  for (int step = 0; step < 20; ++step) log.write(step, {{"loss", 1.0 / (step + 1)}});
  EXPECT_TRUE(ledger_.points().empty());
  ledger_.set_away(false);
  for (int step = 20; step < 40; ++step) log.write(step, {{"loss", 1.0 / (step + 1)}});
  log.finish(RunOutcome::finished);
  expect_all();
}

TEST_F(Trackers, OneThatStaysAwayHoldsTheEndUpForItsTimeOnlyAndGetsEverythingLater) {
  ledger_.is_away = true;
  {
    MetricsLog log = this->log(0.05);
    log.resume(0, {});
    for (int step = 0; step < 5; ++step) log.write(step, {{"loss", 1.0 / (step + 1)}});
  }
  EXPECT_EQ(tracker()->num_waiting(), 5);
  ledger_.set_away(false);
  const std::unique_ptr<Tracker> rest = tracker();
  rest->send_all();
  rest->finish(RunOutcome::finished);
  EXPECT_TRUE(rest->settle());
  EXPECT_EQ(rest->num_waiting(), 0);
  expect_all();
}

TEST_F(Trackers, ALostAnswerNeitherLosesNorDoublesAPoint) {
  ledger_.fails_after = 0;
  MetricsLog log = this->log();
  log.resume(0, {});
  for (int step = 0; step < 20; ++step) log.write(step, {{"loss", 1.0 / (step + 1)}});
  log.finish(RunOutcome::finished);
  expect_all();
  EXPECT_GE(ledger_.num_connects, 2);
}

TEST_F(Trackers, AResumedRunLosesNothingAndDoublesNothing) {
  for (const bool resends : {true, false}) {
    std::filesystem::remove_all(folder_ / "trackers");
    std::filesystem::remove(folder_ / "metrics.jsonl");
    ledger_.rows.clear();
    ledger_.resends = resends;
    SinkPositions positions;
    {
      MetricsLog log = this->log();
      log.resume(0, {});
      for (int step = 0; step < 10; ++step) {
        if (step == 6) positions = log.positions();
        log.write(step, {{"loss", 1.0 / (step + 1)}});
      }
    }
    MetricsLog log = this->log();
    log.resume(6, positions);
    for (int step = 6; step < 15; ++step) log.write(step, {{"loss", 1.0 / (step + 1)}});
    log.finish(RunOutcome::finished);
    expect_all();
    EXPECT_EQ(ledger_.points().size(), 15U);
  }
}

TEST_F(Trackers, AResumeInTheMiddleOfAProcessIsSeen) {
  MetricsLog log = this->log();
  log.resume(0, {});
  SinkPositions positions;
  for (int step = 0; step < 10; ++step) {
    if (step == 6) positions = log.positions();
    log.write(step, {{"loss", 1.0 / (step + 1)}, {"timers/step", 0.5}});
  }
  log.resume(6, positions);
  for (int step = 6; step < 12; ++step) log.write(step, {{"loss", 1.0 / (step + 1)}, {"timers/step", 0.25}});
  log.finish(RunOutcome::finished);
  expect_all(true);
}

TEST_F(Trackers, RowsThatWereNotConfirmedAreSentAgainToTheNextProcess) {
  ledger_.resends = false;
  ledger_.confirms = false;
  std::ofstream(folder_ / "metrics.jsonl") << R"({"step": 0, "time": 1.0, "a": 1.0})"
                                           << "\n"
                                           << R"({"step": 1, "time": 2.0, "a": 2.0})"
                                           << "\n";
  {
    const std::unique_ptr<Tracker> first = tracker();
    first->send_all();
    EXPECT_FALSE(first->settle());
    EXPECT_EQ(first->num_waiting(), 2);
  }
  ledger_.rows.pop_back();  // was on its way
  const std::unique_ptr<Tracker> second = tracker();
  second->send_all();
  second->finish(RunOutcome::finished);
  EXPECT_EQ(second->num_waiting(), 0);
  expect_all();
}

TEST_F(Trackers, ARunThatBeginsAnewInItsFolderIsANewOneThere) {
  std::ofstream(folder_ / "metrics.jsonl") << R"({"step": 0, "time": 1.0, "a": 1.0})"
                                           << "\n";
  tracker()->send_all();
  std::filesystem::rename(folder_ / "metrics.jsonl", folder_ / "metrics.jsonl.before-1");
  static_cast<void>(tracker());
  EXPECT_TRUE(is_file(folder_ / "trackers/ledger.json.before-1"));
  EXPECT_FALSE(is_file(folder_ / "trackers/ledger.json"));
}

TEST_F(Trackers, ARunThatFailedBeforeItsFirstStepTellsNobody) {
  { MetricsLog log = this->log(); }
  EXPECT_EQ(ledger_.num_connects, 0);
}

}  // namespace
}  // namespace kedge
