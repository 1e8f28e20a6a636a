#include "cli/run_on_disk.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge::cli {
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

TEST(RunOnDisk, AnythingElseIsRefusedByName) {
  const TempFolder folder;
  const std::string name = folder.path().string();
  EXPECT_EQ(fault(folder / "none"), name + "/none: no such folder");
  EXPECT_EQ(fault(folder.path()), name + ": not the folder of a run, which holds config.yaml and run.json");
  EXPECT_FALSE(is_run(folder.path()));
  folder.file("config.yaml", "{}");
  folder.file("run.json", "[]");
  EXPECT_EQ(fault(folder.path()), name + "/run.json: tells of no start");
  folder.file("run.json", R"([{"command_line": ["kedge"], "folder": "/there"}])");
  EXPECT_EQ(fault(folder.path()), name + "/run.json: the command line of the last start names no command");
}

}  // namespace
}  // namespace kedge::cli
