#include "kedge/train/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::TempFolder;

RunConfig in(const TempFolder& temp) {
  RunConfig config;
  config.exp_dir = temp.path().string();
  config.name = "sft";
  return config;
}

void save(CheckpointStore& store, int64_t step) {
  CheckpointMeta meta;
  meta.counters = {{"step", step}};
  store.save(meta, [](const Path& folder) { write_atomic(folder / "state", "s"); });
}

TEST(RunFolder, AnExplicitOneWins) {
  const TempFolder temp;
  RunConfig config = in(temp);
  config.explicit_log_dir = (temp / "mine/own").string();
  EXPECT_EQ(open_run_folder(config, "now"), temp / "mine/own");
  EXPECT_TRUE(is_folder(temp / "mine/own"));
}

TEST(RunFolder, OneThatResumesHasNoVersions) {
  const TempFolder temp;
  EXPECT_EQ(open_run_folder(in(temp), "now"), temp / "sft");
}

TEST(RunFolder, OneThatDoesNotHasThem) {
  const TempFolder temp;
  RunConfig config = in(temp);
  config.resume_if_exists = false;
  EXPECT_EQ(open_run_folder(config, "2026-01-31_12-00-00"), temp / "sft/2026-01-31_12-00-00");
  config.use_datetime_version = false;
  EXPECT_EQ(open_run_folder(config, ""), temp / "sft/version_0");
  EXPECT_EQ(open_run_folder(config, ""), temp / "sft/version_1");
  config.version = "trial";
  EXPECT_EQ(open_run_folder(config, ""), temp / "sft/trial");
  EXPECT_EQ(time_as_version().size(), std::string("2026-01-31_12-00-00").size());
}

TEST(RunFolder, IsHeldByOneRunAtATime) {
  const TempFolder temp;
  {
    const RunLock lock(temp.path());
    EXPECT_EQ(error_of([&] { const RunLock second(temp.path()); }), temp.path().string() + ": another run is at work in this folder");
    EXPECT_TRUE(is_run_held(temp.path()));
  }
  EXPECT_FALSE(is_run_held(temp.path()));
  EXPECT_FALSE(is_run_held(temp / "none"));
  EXPECT_NO_THROW(RunLock(temp.path()));
}

TEST(RunFolder, ResumesTheNewest) {
  const TempFolder temp;
  CheckpointStore store(temp / "checkpoints", {.save_top_k = 0, .filename = "run-{step}"});
  RunConfig config = in(temp);
  EXPECT_FALSE(find_resume(config, temp.path(), store).has_value());
  save(store, 4);
  EXPECT_EQ(find_resume(config, temp.path(), store)->step(), 4);
  config.resume_if_exists = false;
  EXPECT_THAT(error_of([&] { return find_resume(config, temp.path(), store); }), HasSubstr("holds checkpoints of an earlier run"));
}

TEST(RunFolder, WithoutAnyCheckpoint) {
  const TempFolder temp, other;
  const CheckpointStore store(temp / "checkpoints", {});
  RunConfig config = in(temp);
  config.resume_ignore_no_checkpoint = false;
  EXPECT_THAT(error_of([&] { return find_resume(config, temp.path(), store); }), HasSubstr("no checkpoint to resume from"));
  CheckpointStore elsewhere(other / "checkpoints", {.save_top_k = 0, .filename = "run-{step}"});
  save(elsewhere, 7);
  config.resume_from_checkpoint = (other / "checkpoints/run-step=7-last").string();
  EXPECT_EQ(find_resume(config, temp.path(), store)->step(), 7);
}

TEST(RunFolder, ADamagedCheckpointIsPassedOverAndNotForkedFrom) {
  const TempFolder temp;
  CheckpointStore store(temp / "checkpoints", {.monitor = "step", .save_top_k = -1, .save_last = false, .filename = "run-{step}"});
  save(store, 7);
  save(store, 9);
  const Path folder = temp / "checkpoints/run-step=9";
  std::string state = read_text(folder / "state");
  state[0] = static_cast<char>(state[0] + 1);
  write_atomic(folder / "state", state);
  EXPECT_EQ(find_resume(in(temp), temp.path(), store)->step(), 7);
  EXPECT_EQ(error_of([&] { return open_checkpoint(folder, "--fork"); }),
            "--fork: not a whole checkpoint: " + folder.string() + ": state: its bytes are not those that were saved");
}

TEST(RunFolder, ACheckpointThatIsNotWholeIsNamed) {
  const TempFolder temp;
  CheckpointStore store(temp / "checkpoints", {.save_top_k = 0, .filename = "run-{step}"});
  save(store, 7);
  const Path folder = temp / "checkpoints/run-step=7-last";
  std::filesystem::remove(folder / "state");
  EXPECT_EQ(error_of([&] { return open_checkpoint(folder, "--fork"); }),
            "--fork: not a whole checkpoint: " + folder.string() + ": state is missing");
  EXPECT_THAT(error_of([&] { return open_checkpoint(temp / "none", "--fork"); }), HasSubstr("--fork: no folder"));
}

}  // namespace
}  // namespace kedge
