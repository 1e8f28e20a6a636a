#include "kedge/train/checkpoint/background_saver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>

#include "kedge/core/error.h"
#include "kedge/core/stop.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::error_of;
using testing::TempFolder;

CheckpointConfig config() { return {.save_top_k = 0, .filename = "run-{step}"}; }

CheckpointMeta meta_of(int64_t step) {
  CheckpointMeta meta;
  meta.counters = {{"step", step}};
  return meta;
}

void fill(const Path& folder) { write_atomic(folder / "state", "abc"); }

std::string finish_error(BackgroundSaver& saver) {
  return error_of<Error>([&] {
    saver.finish();
    return 0;
  });
}

TEST(BackgroundSaver, TheCallerGoesOnWhileASaveIsWritten) {
  const TempFolder temp;
  CheckpointStore store(temp / "c", config());
  BackgroundSaver saver(store);
  std::atomic<bool> may_end = false;
  saver.start(meta_of(1), [&](const Path& folder) {
    while (!may_end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    fill(folder);
  });
  EXPECT_FALSE(is_folder(temp.path() / "c" / "run-step=1-last"));  // nobody would come here if start() waited
  may_end = true;
  saver.finish();
  EXPECT_EQ(store.newest()->step(), 1);
}

TEST(BackgroundSaver, SavesComeOneAfterAnother) {
  const TempFolder temp;
  CheckpointStore store(temp / "c", config());
  BackgroundSaver saver(store);
  std::atomic<int> running = 0;
  for (int64_t step = 1; step <= 5; ++step)
    saver.start(meta_of(step), [&](const Path& folder) {
      EXPECT_EQ(++running, 1);
      fill(folder);
      --running;
    });
  saver.finish();
  EXPECT_EQ(store.newest()->step(), 5);
  EXPECT_EQ(saver.num_failed(), 0);
}

TEST(BackgroundSaver, ASaveThatASignalEndedIsNoFailure) {
  const TempFolder temp;
  CheckpointStore store(temp / "c", config());
  BackgroundSaver saver(store);
  saver.start(meta_of(1), fill);
  saver.start(meta_of(2), [](const Path&) { throw Interrupted(SIGTERM, "SIGTERM came"); });
  EXPECT_EQ(error_of<Interrupted>([&] {
              saver.finish();
              return 0;
            }),
            "SIGTERM came");
  EXPECT_EQ(saver.num_failed(), 0);
  EXPECT_EQ(store.newest()->step(), 1);
  saver.start(meta_of(3), fill);
  saver.finish();
  EXPECT_EQ(store.newest()->step(), 3);
}

TEST(BackgroundSaver, AFailedSaveKeepsTheLastGoodOneAndTheNextIsAnotherTry) {
  const TempFolder temp;
  CheckpointStore store(temp / "c", config());
  BackgroundSaver saver(store);
  saver.start(meta_of(1), fill);
  saver.start(meta_of(2), [](const Path&) { throw Error("no room"); });
  EXPECT_EQ(finish_error(saver), "the checkpoint of step 2 could not be saved: no room");
  EXPECT_EQ(store.newest()->step(), 1);
  saver.start(meta_of(3), fill);
  saver.finish();
  EXPECT_EQ(store.newest()->step(), 3);
  EXPECT_EQ(saver.num_failed(), 1);
}

// A save that the store does not keep is not among them.
TEST(BackgroundSaver, SavedStepsAreThoseOnDisk) {
  const TempFolder temp;
  CheckpointConfig first_is_best = config();
  first_is_best.monitor = "step";
  first_is_best.save_top_k = 1;
  CheckpointStore last(temp / "last", first_is_best);
  first_is_best.save_last = false;
  CheckpointStore best(temp / "best", first_is_best);
  BackgroundSaver last_saver(last), best_saver(best);
  for (int64_t step = 1; step <= 3; ++step) {
    last_saver.start(meta_of(step), fill);
    best_saver.start(meta_of(step), fill);
  }
  last_saver.finish();
  best_saver.finish();
  EXPECT_EQ(last_saver.saved_steps(), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(best_saver.saved_steps(), (std::vector<int64_t>{1}));
  EXPECT_EQ(BackgroundSaver(last).saved_steps(), last_saver.saved_steps()) << "a new process knows them";
}

TEST(BackgroundSaver, ItsEndWaitsForTheSaveUnderWay) {
  const TempFolder temp;
  CheckpointStore store(temp / "c", config());
  {
    BackgroundSaver saver(store);
    saver.start(meta_of(4), [](const Path& folder) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      fill(folder);
    });
  }
  EXPECT_EQ(store.newest()->step(), 4);
}

}  // namespace
}  // namespace kedge
