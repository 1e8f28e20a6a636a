#include "kedge/inspect/run_on_disk.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "kedge/run/online_job.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using kedge::testing::error_of;
using kedge::testing::TempFolder;

std::string fault(const Path& folder) {
  return error_of([&] { return open_run(folder); });
}

TEST(RunOnDisk, TellsWhatMadeIt) {
  const TempFolder folder;
  folder.file("config.yaml", "{}");
  folder.file("run.json",
              R"([{"command_line": ["kedge", "sft"], "folder": "/before"}, {"command_line": ["kedge", "rs", "a=1"], "folder": "/there"}])");
  EXPECT_TRUE(is_run(folder.path()));
  const RunOnDisk run = open_run(folder / "." / "");
  EXPECT_TRUE(run.folder.is_absolute());
  EXPECT_EQ(run.algorithm, "rs");
  EXPECT_EQ(run.started_in, "/there");
  EXPECT_EQ(run.starts.as_array("").size(), 2);
  EXPECT_TRUE(is_file(run.config));
  EXPECT_TRUE(run.checkpoints.empty());
}

TEST(RunOnDisk, ACommandLineIsOfWords) {
  const TempFolder folder;
  folder.file("config.yaml", "{}");
  folder.file("run.json", R"([{"command_line": ["kedge", "serve", 3], "folder": "/there"}])");
  EXPECT_EQ(fault(folder.path()), (folder / "run.json").string() + ": expected a string, found 3");
}

TEST(RunOnDisk, WhoTrainsOnlineIsToldByName) {
  for (const char* name : {"ppo", "reinforce", "rs", "sft", "rm", "serve", "eval", ""})
    EXPECT_EQ(trains_online(name), make_online_job(name) != nullptr) << name;
}

TEST(RunOnDisk, HasEveryStepOnceAndOnlyWholeCheckpoints) {
  const TempFolder folder;
  folder.file("config.yaml", "{}");
  folder.file("run.json", R"([{"command_line": ["kedge", "rs"], "folder": "/there"}])");
  CheckpointStore store(folder / "checkpoints", {.monitor = "step", .mode = MonitorMode::max, .save_top_k = -1, .filename = "run-{step}"});
  for (const int64_t step : {10, 2, 6}) {
    CheckpointMeta meta;
    meta.counters["step"] = step;
    store.save(meta, [](const Path& path) { write_atomic(path / "weights", "0123"); });
  }
  write_atomic(folder / "checkpoints" / "run-step=2" / "weights", "012");
  std::vector<int64_t> steps;
  for (const Checkpoint& checkpoint : open_run(folder.path()).checkpoints) steps.push_back(checkpoint.step());
  EXPECT_EQ(steps, (std::vector<int64_t>{6, 10}));
}

TEST(RunOnDisk, ARunOfAnotherUserNeedsAWord) {
  const TempFolder folder;
  folder.file("config.yaml", "{}");
  folder.file("run.json", "[]");
  EXPECT_TRUE(is_own_run(folder.path()));
  EXPECT_FALSE(is_own_run(folder.path(), geteuid() + 1));
  EXPECT_FALSE(is_own_run("/proc/1"));  // without its two files it is nobody's
  check_may_run(folder.path(), false);
  EXPECT_EQ(error_of([] {
              check_may_run("/proc/1", false);
              return 0;
            }),
            "/proc/1: belongs to another user, and its config.yaml may name commands that would run as you; read it, then add "
            "--allow-commands");
  check_may_run("/proc/1", true);
}

TEST(RunOnDisk, AnythingElseIsRefusedByName) {
  const TempFolder folder;
  const std::string name = folder.path().string();
  EXPECT_EQ(fault(folder / "none"), name + "/none: no such folder");
  EXPECT_EQ(fault(folder.path()), name + ": not the folder of a run, which holds config.yaml and run.json");
  EXPECT_FALSE(is_run(folder.path()));
  folder.file("config.yaml", "{}");
  folder.file("run.json", "[]");
  EXPECT_EQ(fault(folder.path()), name + "/run.json: records no start");
  folder.file("run.json", R"([{"command_line": ["kedge"], "folder": "/there"}])");
  EXPECT_EQ(fault(folder.path()), name + "/run.json: the command line of the last start names no command");
}

}  // namespace
}  // namespace kedge
