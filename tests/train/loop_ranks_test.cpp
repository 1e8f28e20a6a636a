// The loop on the 2 or 3 ranks that mpirun has started.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "kedge/train/loop.h"

#include "tests/support/expect_error.h"
#include "tests/support/ranks.h"
#include "tests/support/temp_folder.h"
#include "tests/support/toy_trainer.h"

namespace kedge {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TempFolder;
using testing::world;

// Six steps, saved every two, in rank 0's folder, which stays until all are done with it.
struct RankRun {
  explicit RankRun(bool save_last) : folder(temp.path().string()) {
    world().broadcast(folder, 0);
    CheckpointConfig config{.monitor = "step", .save_top_k = 1, .save_last = save_last, .filename = "run-{step}"};
    if (world().rank() == 0) store.emplace(Path(folder) / "checkpoints", config);
    if (store) saver.emplace(*store);
  }
  ~RankRun() { world().barrier(); }
  RankRun(const RankRun&) = delete;
  RankRun& operator=(const RankRun&) = delete;

  LoopResult run() {
    MetricsLog log(false);
    const StopSignals signals;
    LoopOptions options;
    options.steps = {4, 6};
    options.intervals = {6, 0, 2, true};
    options.folder = folder;
    return run_loop({trainer, world(), log, saver ? &*saver : nullptr, signals}, options, 0);
  }
  [[nodiscard]] bool has_parts() const {
    world().barrier();
    const Path parts = Path(folder) / ".checkpoint-parts";
    return is_folder(parts) && !fs::is_empty(parts);
  }

  TempFolder temp;
  std::string folder;
  testing::ToyTrainer trainer;
  std::optional<CheckpointStore> store;
  std::optional<BackgroundSaver> saver;
};

// A rehearsal makes collective calls, as a step does.
TEST(LoopRanks, ASignalOfOneRankKeepsAllFromRehearsing) {
  testing::ToyTrainer trainer;
  MetricsLog log(false);
  const StopSignals signals;
  if (world().rank() == 1) ::raise(SIGUSR1);
  LoopOptions options;
  options.steps = {4, 9};
  options.intervals = {9, 0, 0, false};
  options.rehearses = true;
  const LoopResult result = run_loop({trainer, world(), log, nullptr, signals}, options, 0);
  EXPECT_EQ(result.reason, "SIGUSR1");
  EXPECT_THAT(trainer.calls, ::testing::ElementsAre("step"));
}

TEST(LoopRanks, NoRankWritesItsPartOfACheckpointThatIsNotKept) {
  RankRun job(false);
  EXPECT_EQ(job.run().reason, "complete");
  EXPECT_THAT(job.trainer.saved, ::testing::ElementsAre(2)) << "the best by its step";
  EXPECT_FALSE(job.has_parts());
}

// A file in the way of the folder: rank 0 fails before it looks for the others' parts.
TEST(LoopRanks, PartsOfASaveThatFailedAreGoneWithTheNext) {
  RankRun job(true);
  if (job.store) fs::remove_all(Path(job.folder) / "checkpoints");
  if (job.store) write_atomic(Path(job.folder) / "checkpoints", "");
  const auto run = [&] { return job.run(); };
  if (job.store) {
    EXPECT_THAT(error_of<Error>(run), HasSubstr("the checkpoint of step 6 could not be saved"));
  } else {
    EXPECT_EQ(run().reason, "complete");
  }
  world().barrier();
  for (const int step : {2, 4}) EXPECT_FALSE(is_folder(Path(job.folder) / ".checkpoint-parts" / std::to_string(step)));
}

}  // namespace
}  // namespace kedge
