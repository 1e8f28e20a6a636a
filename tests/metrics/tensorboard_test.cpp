#include "kedge/metrics/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "kedge/core/error.h"
#include "kedge/metrics/tfevents.h"

#include "tests/support/file_size_limit.h"
#include "tests/support/temp_folder.h"

// What TensorBoard's own reader makes of these files is asked in tensorboard_interop.py.
namespace kedge {
namespace {

using testing::FileSizeLimit;
using testing::TempFolder;

constexpr double kNow = 1700000000.5;
const WallClock kStoppedClock = [] { return kNow; };

std::vector<Path> event_files_in(const Path& folder) {
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string head(int64_t step) { return tf_record(version_event(kNow)) + tf_record(session_start_event(kNow, step)); }

TEST(TensorBoardSink, AFileSaysItsVersionAndFirstStepAndThenTheNumbers) {
  const TempFolder folder;
  TensorBoardSink sink(folder / "new/tb", kStoppedClock);
  EXPECT_TRUE(event_files_in(folder / "new/tb").empty());
  sink.write(4, {{"a", 1}, {"b", 2}});
  sink.write(5, {});  // nothing to say
  sink.write(6, {{"a", 3}});
  sink.flush();
  const auto files = event_files_in(folder / "new/tb");
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(read_text(files[0]),
            head(4) + tf_record(scalars_event(kNow, 4, {{"a", 1}, {"b", 2}})) + tf_record(scalars_event(kNow, 6, {{"a", 3}})));
  const std::string name = files[0].filename().string();
  EXPECT_TRUE(name.starts_with("events.out.tfevents.1700000000.")) << name;
  EXPECT_NE(name.find("." + std::to_string(::getpid()) + "."), std::string::npos) << name;
}

TEST(TensorBoardSink, ANewFileSortsAfterAllOlderOnes) {
  const TempFolder folder;
  folder.file("events.out.tfevents.1700000007.host.1.0", "from a clock that went ahead");
  folder.file("events.out.tfevents.what.ever", "");
  folder.file("zzz", "something else");
  for (int i = 0; i < 3; ++i) TensorBoardSink(folder.path(), kStoppedClock).write(0, {{"a", 1}});
  const auto files = event_files_in(folder.path());
  ASSERT_EQ(files.size(), 6U);
  for (const size_t i : {1U, 2U, 3U}) {
    const std::string wanted = "events.out.tfevents." + std::to_string(1700000007 + i) + ".";
    EXPECT_TRUE(files[i].filename().string().starts_with(wanted)) << files[i];
  }
}

TEST(TensorBoardSink, AResumedRunStartsAtItsStepButKeepsWhatTheCheckpointHolds) {
  const TempFolder folder;
  SinkPositions before, after;
  {
    TensorBoardSink sink(folder / "a", kStoppedClock);
    sink.record(before);
    sink.write(9, {{"train/loss", 1}});
    sink.write(10, {{"val/loss", 1}});  // after the tenth step, before its checkpoint
    sink.record(after);
  }
  EXPECT_TRUE(before.empty());
  EXPECT_EQ(after, (SinkPositions{{"tensorboard", 10}}));
  const auto first_bytes = [&](const char* name, int64_t step, const SinkPositions& positions) {
    TensorBoardSink sink(folder / name, kStoppedClock);
    sink.resume(step, positions);
    SinkPositions again;
    sink.record(again);
    EXPECT_EQ(again, positions);
    sink.write(10, {{"train/loss", 1}});
    return read_text(event_files_in(folder / name).at(0)).substr(0, head(0).size());
  };
  EXPECT_EQ(first_bytes("b", 10, after), head(11));
  EXPECT_EQ(first_bytes("c", 10, {{"tensorboard", 9}}), head(10));
  EXPECT_EQ(first_bytes("d", 10, {}), head(10));
}

TEST(TensorBoardSink, AResumeAfterTheFirstWriteIsSaidInTheSameFile) {
  const TempFolder folder;
  TensorBoardSink sink(folder.path(), kStoppedClock);
  sink.write_text(0, "config", "a: 1");
  sink.resume(10, {});
  const auto files = event_files_in(folder.path());
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(read_text(files[0]), head(0) + tf_record(text_event(kNow, 0, "config", "a: 1")) + tf_record(session_start_event(kNow, 10)));
}

TEST(TensorBoardSink, AFullDiskLosesEventsButNeverTheHeadOfTheFile) {
  const TempFolder folder;
  TensorBoardSink sink(folder.path(), kStoppedClock);
  {
    const FileSizeLimit limit(20);
    EXPECT_THROW(sink.write(0, {{"a", 1}}), Error);
    EXPECT_THROW(sink.write(1, {{"a", 1}}), Error);
  }
  sink.write(2, {{"a", 1}});
  const auto files = event_files_in(folder.path());
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(read_text(files[0]), head(2) + tf_record(scalars_event(kNow, 2, {{"a", 1}})));
}

TEST(SamplesAsMarkdown, IsATableWithARowASample) {
  EXPECT_EQ(samples_as_markdown(7, {"train_rollouts", {{"Hi", "Hello\nyou", 1.5}, {"", "r", -2}}}),
            "| step | prompt | response | reward |\n"
            "| --- | --- | --- | --- |\n"
            "| 7 | Hi | Hello<br>you | 1.5 |\n"
            "| 7 |  | r | -2.0 |\n");
}

TEST(SamplesAsMarkdown, HasAColumnForEachFurtherField) {
  EXPECT_EQ(samples_as_markdown(7, {"t", {{"p", "r", 0, {{"kl", 0.5}}}, {"p", "r", 0, {{"finish", "stop"}}}}}),
            "| step | prompt | response | reward | kl | finish |\n"
            "| --- | --- | --- | --- | --- | --- |\n"
            "| 7 | p | r | 0.0 | 0.5 |  |\n"
            "| 7 | p | r | 0.0 |  | stop |\n");
}

TEST(SamplesAsMarkdown, TakesNothingInTheTextForMarkup) {
  const std::string text = samples_as_markdown(0, {"t", {{"a|b", "<b>*x*</b> `y` [z]\x01", 0}}});
  EXPECT_THAT(text, ::testing::HasSubstr("| a&#124;b | &#60;b&#62;&#42;x&#42;&#60;/b&#62; &#96;y&#96; &#91;z&#93;\u2401 | 0.0 |\n"));
}

}  // namespace
}  // namespace kedge
