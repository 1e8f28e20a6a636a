#include "kedge/metrics/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kedge/core/error.h"

#include "tests/support/read_metrics.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::read_metrics;
using testing::TempFolder;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const WallClock kClock = [] { return 1700000000.25; };

std::vector<int64_t> steps_in(const Path& path) {
  std::vector<int64_t> steps;
  for (const JsonlLine& line : read_jsonl(path)) steps.push_back(line.value.at("step", "line").as_integer("step"));
  return steps;
}

TEST(JsonlSink, WritesOneObjectALine) {
  const TempFolder folder;
  JsonlSink sink(folder / "new/run", kClock);
  sink.write(3, {{"train_optim/loss", 0.5}, {"train_optim/lr", 1e-6}});
  sink.write_samples(3, {"train_rollouts", {{"Say \"hi\"", "hi\n", 1.5, {{"finish", "stop"}, {"kl", 0.25}}}, {"p", "r", kInfinity}}});
  EXPECT_EQ(read_text(folder / "new/run/metrics.jsonl"),
            "{\"step\": 3, \"time\": 1700000000.25, \"train_optim/loss\": 0.5, \"train_optim/lr\": 1e-06}\n");
  EXPECT_EQ(
      read_text(folder / "new/run/samples.jsonl"),
      "{\"step\": 3, \"time\": 1700000000.25, \"table\": \"train_rollouts\", \"prompt\": \"Say \\\"hi\\\"\", \"response\": \"hi\\n\", "
      "\"reward\": 1.5, \"finish\": \"stop\", \"kl\": 0.25}\n"
      "{\"step\": 3, \"time\": 1700000000.25, \"table\": \"train_rollouts\", \"prompt\": \"p\", \"response\": \"r\", "
      "\"reward\": \"Infinity\"}\n");
}

TEST(JsonlSink, EveryNumberReadsBackToTheSameBits) {
  const TempFolder folder;
  const std::vector<double> values = {0.1, -0.0, 5e-324, 1.7976931348623157e308, 1.0 / 3, 9007199254740993.0, kInfinity, -kInfinity};
  Metrics metrics{{"nan", std::nan("")}};
  for (size_t i = 0; i < values.size(); ++i) metrics.set("m/" + std::to_string(i), values[i]);
  JsonlSink(folder.path()).write(int64_t{1} << 40, metrics);
  EXPECT_EQ(read_text(folder / "metrics.jsonl").find("null"), std::string::npos);
  const auto lines = read_metrics(folder / "metrics.jsonl");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].step, int64_t{1} << 40);
  EXPECT_TRUE(std::isnan(*lines[0].metrics.find("nan")));
  for (size_t i = 0; i < values.size(); ++i) {
    const double found = *lines[0].metrics.find("m/" + std::to_string(i));
    EXPECT_EQ(found, values[i]);
    EXPECT_EQ(std::signbit(found), std::signbit(values[i]));
  }
}

TEST(JsonlSink, ResumesWhereTheCheckpointWasTaken) {
  const TempFolder folder;
  SinkPositions positions;
  {
    JsonlSink sink(folder.path());
    sink.write(0, {{"a", 1}});
    sink.write_samples(0, {"t", {{"p", "r", 0}}});
    sink.write(1, {{"val/a", 1}});  // the validation after step 0, which the checkpoint holds
    sink.flush();
    sink.record(positions);
    sink.write(1, {{"a", 2}});
    sink.write_samples(1, {"t", {{"p", "r", 0}}});
  }
  EXPECT_EQ(positions.at("metrics.jsonl"), static_cast<int64_t>(read_text(folder / "metrics.jsonl").rfind("{\"step\": 1")));
  JsonlSink sink(folder.path());
  sink.resume(1, positions);
  EXPECT_EQ(steps_in(folder / "samples.jsonl"), (std::vector<int64_t>{0}));
  sink.write(1, {{"a", 3}});
  const auto lines = read_metrics(folder / "metrics.jsonl");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1].metrics.find("val/a"), std::optional(1.0));
  EXPECT_EQ(lines[2].metrics.find("a"), std::optional(3.0));
}

// Shortened, edited, deleted or of no use: a run goes on all the same.
TEST(JsonlSink, AFileThatWasChangedSinceTheCheckpointIsNoReasonNotToResume) {
  const TempFolder folder;
  const auto write = [&](const std::string& text) { folder.file("metrics.jsonl", text); };
  const std::string zero = "{\"step\": 0}\n", one = "{\"step\": 1}\n", two = "{\"step\": 2}\n";
  const auto resumed = [&](int64_t position) {
    ::testing::internal::CaptureStderr();
    JsonlSink(folder.path()).resume(1, {{"metrics.jsonl", position}, {"samples.jsonl", 0}});
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(log, ::testing::HasSubstr("metrics.jsonl: was changed since the checkpoint"));
    return read_text(folder / "metrics.jsonl");
  };
  write(zero);
  EXPECT_EQ(resumed(500), zero);
  write("");
  EXPECT_EQ(resumed(12), "");
  std::filesystem::remove(folder / "metrics.jsonl");
  EXPECT_EQ(resumed(12), "");
  write(zero + one + two);
  EXPECT_EQ(resumed(5), zero);
  write("not JSON\n" + one);
  EXPECT_EQ(resumed(500), "not JSON\n" + one);
}

TEST(JsonlSink, WithoutARecordedOffsetItResumesBeforeTheFirstLineOfTheStep) {
  const TempFolder folder;
  JsonlSink sink(folder.path());
  for (int64_t step = 0; step < 5; ++step) sink.write(step, {{"a", 1}});
  sink.resume(7, {});
  EXPECT_EQ(steps_in(folder / "metrics.jsonl"), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  sink.resume(3, {});
  EXPECT_EQ(steps_in(folder / "metrics.jsonl"), (std::vector<int64_t>{0, 1, 2}));
  sink.resume(0, {});
  EXPECT_TRUE(steps_in(folder / "metrics.jsonl").empty());
}

TEST(JsonlSink, AReservedNameIsABug) {
  const TempFolder folder;
  JsonlSink sink(folder.path());
  EXPECT_THROW(sink.write(0, {{"step", 1}}), Bug);
  EXPECT_THROW(sink.write_samples(0, {"t", {{"p", "r", 0, {{"prompt", "again"}}}}}), Bug);
}

}  // namespace
}  // namespace kedge
