#include "kedge/metrics/trackers/tracker_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "kedge/core/json.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

// "3@10.5 loss=1 time=2": what was sent, for comparison.
std::string shown(const std::vector<TrackerRow>& rows) {
  std::string text;
  for (const TrackerRow& row : rows) {
    text += str(text.empty() ? "" : "; ", row.number, ": step ", row.step, " ms ", row.time_ms);
    for (const auto& [name, value] : row.numbers) text += str(" ", name, "=", value);
  }
  return text;
}

std::string line(int step, double time, double loss, double seconds) {
  return str("{\"step\": ", step, ", \"time\": ", time, ", \"loss\": ", loss, ", \"timers/step\": ", seconds, "}\n");
}

class TrackerStates : public ::testing::Test {
 protected:
  void append(const std::string& text) const { std::ofstream(file_, std::ios::app) << text; }
  void cut(int64_t size) const { std::filesystem::resize_file(file_, static_cast<uintmax_t>(size)); }
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(std::filesystem::file_size(file_)); }
  // All that is in the file, sent and confirmed.
  std::string send_all(TrackerState& state) const {
    const std::string rows = shown(read_rows(file_, state.held));
    state.sent_to = state.held.position;
    return rows;
  }

  testing::TempFolder folder_;
  Path file_ = folder_ / "metrics.jsonl";
};

TEST_F(TrackerStates, RowsComeOfCompleteLinesEachOnce) {
  TrackerCursor cursor;
  EXPECT_TRUE(read_rows(file_, cursor).empty());  // no file yet
  append(line(0, 1.5, 3, 7) + "{\"step\": 1, \"time\": 2");
  EXPECT_EQ(shown(read_rows(file_, cursor)), "0: step 0 ms 1500 loss=3 timers/step=7");
  EXPECT_TRUE(read_rows(file_, cursor).empty());
  append(".5, \"loss\": \"NaN\", \"a\": \"-Infinity\"}\n");
  EXPECT_EQ(shown(read_rows(file_, cursor)), "1: step 1 ms 2500 loss=nan a=-inf");
  EXPECT_EQ(cursor.position, size());
}

TEST_F(TrackerStates, RowsOfOneMillisecondGetTimesOfTheirOwn) {
  append(line(0, 1.5, 3, 7) + line(0, 1.5, 3, 7) + line(0, 1.5, 3, 7) + line(1, 9, 3, 7));
  TrackerCursor cursor;
  EXPECT_EQ(shown(read_rows(file_, cursor)),
            "0: step 0 ms 1500 loss=3 timers/step=7; 1: step 0 ms 1501 loss=3 timers/step=7; "
            "2: step 0 ms 1502 loss=3 timers/step=7; 3: step 1 ms 9000 loss=3 timers/step=7");
}

TEST_F(TrackerStates, LimitsEndABatchAtALine) {
  append(line(0, 1, 3, 7) + line(1, 2, 4, 8) + line(2, 3, 5, 9));
  TrackerCursor cursor;
  EXPECT_EQ(shown(read_rows(file_, cursor, {.max_numbers = 3})),
            "0: step 0 ms 1000 loss=3 timers/step=7; 1: step 1 ms 2000 loss=4 timers/step=8");
  TrackerCursor one;
  EXPECT_EQ(read_rows(file_, one, {.max_lines = 1}).size(), 1U);
  EXPECT_TRUE(read_rows(file_, one, {.end = one.position}).empty());
}

TEST_F(TrackerStates, ALineThatIsNoJsonIsPassedOver) {
  append("what?\n" + line(1, 2, 4, 8));
  TrackerCursor cursor;
  EXPECT_EQ(shown(read_rows(file_, cursor)), "0: step 1 ms 2000 loss=4 timers/step=8");
  EXPECT_EQ(cursor.position, size());
}

TEST_F(TrackerStates, AResumedRunSendsOnlyWhatItMeasuredAnew) {
  TrackerState state;
  append(line(0, 1, 3, 7));
  const int64_t checkpoint = size();
  append(line(1, 2, 4, 8) + line(2, 3, 5, 9));
  EXPECT_EQ(read_rows(file_, state.held).size(), 3U);
  state.sent_to = state.held.position;
  state.take_back(file_, checkpoint);
  cut(checkpoint);
  EXPECT_EQ(state.held.position, checkpoint);
  append(line(1, 12, 4, 8.25) + line(2, 13, 5, 9) + line(3, 14, 6, 1));
  EXPECT_EQ(send_all(state), "3: step 1 ms 12000 timers/step=8.25; 4: step 3 ms 14000 loss=6 timers/step=1");
  EXPECT_TRUE(state.held.ahead.empty());  // of steps that are over
}

TEST_F(TrackerStates, ACutBehindTheConfirmedLinesTakesNothingBack) {
  TrackerState state;
  append(line(0, 1, 3, 7));
  send_all(state);
  append(line(1, 2, 4, 8));
  const int64_t checkpoint = size();
  append(line(2, 3, 5, 9));
  state.take_back(file_, checkpoint);
  cut(checkpoint);
  EXPECT_FALSE(state.unsure.has_value());  // it was not sent
  append(line(2, 13, 5, 10));
  EXPECT_EQ(send_all(state), "1: step 1 ms 2000 loss=4 timers/step=8; 2: step 2 ms 13000 loss=5 timers/step=10");
}

TEST_F(TrackerStates, WhatWasOnItsWayWhenTheRunDiedIsSettledByTheNumberOfRowsThatArrived) {
  TrackerState state;
  append(line(0, 1, 3, 7));
  send_all(state);
  append(line(1, 2, 4, 8));
  const int64_t checkpoint = size();
  append(line(2, 3, 5, 9) + line(3, 4, 6, 1));
  state.sent_to = size();
  state.take_back(file_, checkpoint);
  cut(checkpoint);
  ASSERT_TRUE(state.unsure.has_value());
  EXPECT_EQ(shown(state.unsure->rows), "2: step 2 ms 3000 loss=5 timers/step=9; 3: step 3 ms 4000 loss=6 timers/step=1");
  const TrackerState before = TrackerState::from_json(Json::parse(state.to_json().dump()), "state");

  state.settle(file_, 2);  // of both, the first arrived
  append(line(2, 13, 5, 10) + line(3, 14, 6, 2));
  EXPECT_EQ(send_all(state), "3: step 2 ms 13000 timers/step=10; 4: step 3 ms 14000 loss=6 timers/step=2");

  state = before;
  state.settle(file_, 0);  // nothing did
  EXPECT_EQ(send_all(state),
            "1: step 1 ms 2000 loss=4 timers/step=8; 2: step 2 ms 13000 loss=5 timers/step=10; 3: step 3 ms 14000 loss=6 timers/step=2");

  state = before;
  state.settle(file_, 3);  // all did
  EXPECT_EQ(send_all(state), "4: step 2 ms 13000 timers/step=10; 5: step 3 ms 14000 timers/step=2");
}

TEST_F(TrackerStates, WhatIsSentAgainCountsAsSent) {
  TrackerState state;
  append(line(0, 1, 3, 7) + line(1, 2, 4, 8));
  state.sent_to = size();
  state.take_back(file_, 0);
  cut(0);
  ASSERT_TRUE(state.unsure.has_value());
  state.take_back(file_, 0);  // a start that got nowhere
  EXPECT_EQ(shown(state.unsure->rows), "0: step 0 ms 1000 loss=3 timers/step=7; 1: step 1 ms 2000 loss=4 timers/step=8");
  state.settle_unsure();
  append(line(0, 11, 3, 7) + line(1, 12, 4, 9));
  EXPECT_EQ(send_all(state), "2: step 1 ms 12000 timers/step=9");
}

TEST_F(TrackerStates, AStateReadsBackAsItWas) {
  TrackerState state;
  state.held = {12, 3, 4, {{1, "a/b", std::nan("")}, {2, "c", -0.1}}};
  state.sent_to = 14;
  state.unsure = TrackerState::Unsure{12, {{3, 2, 5, {{"c", INFINITY}}}}};
  state.link = Json::Object{{"run_id", "abc"}};
  const TrackerState read = TrackerState::from_json(Json::parse(state.to_json().dump()), "state");
  EXPECT_EQ(read.to_json(), state.to_json());
  EXPECT_EQ(read.held.ahead.at(1).value, -0.1);
  EXPECT_EQ(testing::error_of([] { return TrackerState::from_json(Json::parse("{}"), "mlflow.json"); }),
            "mlflow.json: no \"position\" field");
}

TEST_F(TrackerStates, CountsLines) {
  append("a\nb\nc");
  EXPECT_EQ(count_lines(file_, 0), 2);
  EXPECT_EQ(count_lines(file_, 2), 1);
  EXPECT_EQ(count_lines(folder_ / "none", 0), 0);
}

}  // namespace
}  // namespace kedge
