#include "kedge/run/disk_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/model/spec/shapes.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using kedge::testing::error_of;
using kedge::testing::TempFolder;
using ::testing::HasSubstr;

MemoryInput network() {
  MemoryInput input;
  input.model = shape_config("135m");
  input.tokens = input.longest = 8;
  return input;
}

TEST(DiskCheck, CheckpointsAreCountedAsManyAsAreKept) {
  const TempFolder folder;
  RunConfig run;
  run.explicit_log_dir = (folder / "not" / "there").string();
  const MemoryPlan memory = plan_memory(network());
  const auto kept = [&](int64_t top_k, bool last) {
    run.checkpoint_callback_params.save_top_k = top_k;
    run.checkpoint_callback_params.save_last = last;
    return plan_disk(run, 100, 10, network()).num_kept;
  };
  EXPECT_EQ(kept(3, true), 4);
  EXPECT_EQ(kept(3, false), 3);
  EXPECT_EQ(kept(-1, true), 10);
  EXPECT_EQ(kept(50, true), 10);
  const DiskPlan plan = plan_disk(run, 100, 10, network());
  EXPECT_EQ(plan.folder, folder.path());
  EXPECT_GT(plan.free, 0);
  EXPECT_EQ(plan.checkpoint, memory.parameters + memory.snapshot);
  EXPECT_EQ(plan.needed(), 10 * plan.checkpoint + memory.parameters);
  EXPECT_EQ(plan_disk(run, 100, 0, network()).needed(), memory.parameters);
  run.create_checkpoint_callback = false;
  EXPECT_EQ(plan_disk(run, 100, 10, network()).num_kept, 0);
}

TEST(DiskCheck, OfAdaptersOnlyTheirOwnAreWritten) {
  MemoryInput adapted = network();
  adapted.lora.emplace();
  const DiskPlan plan = plan_disk({}, 100, 10, adapted);
  EXPECT_EQ(plan.checkpoint, 4 * plan_memory(adapted).gradients);
}

TEST(DiskCheck, WithoutRoomForASecondCheckpointARunIsRefused) {
  DiskPlan plan{.folder = "runs", .free = 100, .checkpoint = 40, .num_kept = 2, .model = 20};
  EXPECT_TRUE(plan.fits());
  require_disk(plan);
  plan.free = 99;
  EXPECT_FALSE(plan.fits());
  EXPECT_THAT(error_of([&] { require_disk(plan); }),
              HasSubstr("runs: 99 B of disk space are free, not enough for two checkpoints of 40 B each"));
}

// Stopped and started again, it needs room for one more only: the next one takes the place of the one that is there.
TEST(DiskCheck, CheckpointsOfTheRunItselfAreRoomThatItWillFree) {
  DiskPlan plan{.folder = "runs", .free = 60, .held = 40, .checkpoint = 40, .num_kept = 2, .model = 20};
  EXPECT_TRUE(plan.fits());
  plan.held = 39;
  EXPECT_FALSE(plan.fits());
  plan.held = 400;  // the next one is written before another goes
  plan.free = 59;
  EXPECT_FALSE(plan.fits());

  const TempFolder folder;
  make_folder(folder / "checkpoints/a");
  folder.file("checkpoints/a/state", std::string(1000, 'x'));
  link_folder(folder / "checkpoints/a", folder / "checkpoints/a-last");
  RunConfig run;
  run.explicit_log_dir = folder.path().string();
  EXPECT_EQ(plan_disk(run, 100, 10, network()).held, 1000);
  run.resume_if_exists = false;
  EXPECT_EQ(plan_disk(run, 100, 10, network()).held, 0);
}

TEST(DiskCheck, RecordsGrowWithTokens) {
  EXPECT_EQ(record_bytes(2, 0, 0), 1000);
  EXPECT_EQ(record_bytes(2, 10, 100) - record_bytes(2, 0, 0), 2 * (100 + 5000));
}

}  // namespace
}  // namespace kedge
