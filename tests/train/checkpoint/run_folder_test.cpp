#include "kedge/train/checkpoint/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

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

TEST(RunFolder, OneThatIsNotKeptIsTemporary) {
  const TempFolder temp;
  RunConfig config = in(temp);
  config.explicit_log_dir = (temp / "mine").string();
  config.keep_folder = false;
  EXPECT_FALSE(config.saves());
  EXPECT_FALSE(config.writes_model());
  const Path folder = open_run_folder(config, "now");
  {
    const ScratchFolder scratch(config, folder);
    write_atomic(folder / "metrics.jsonl", "x");
  }
  EXPECT_FALSE(is_folder(folder));
  EXPECT_FALSE(is_folder(temp / "mine"));
  config.keep_folder = true;
  { const ScratchFolder scratch(config, open_run_folder(config, "now")); }
  EXPECT_TRUE(is_folder(temp / "mine"));
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
  const CheckpointCheck verify = [](const Checkpoint& one) { throw UsageError(str("no critic of step ", one.step())); };
  EXPECT_THAT(error_of([&] { return find_resume(in(temp), temp.path(), store, verify); }),
              HasSubstr("none of its checkpoints can be used:\n  no critic of step 7\n  no critic of step 9\n"));
  EXPECT_EQ(error_of([&] { return open_checkpoint(folder, "--fork"); }),
            "--fork: incomplete checkpoint: " + folder.string() + ": state: its bytes are not those that were saved");
}

// As a bad block does it: the last and the best are the same file under two names.
TEST(RunFolder, WhereNoCheckpointCanBeUsedNothingBeginsAnew) {
  const TempFolder temp;
  CheckpointStore store(temp / "checkpoints", {.monitor = "step", .save_top_k = 1, .filename = "run-{step}"});
  save(store, 7);
  const Path last = temp / "checkpoints/run-step=7-last", best = temp / "checkpoints/run-step=7";
  {
    std::fstream file(last / "state", std::ios::binary | std::ios::in | std::ios::out);
    file << 'x';
  }
  EXPECT_EQ(
      error_of([&] { return find_resume(in(temp), temp.path(), store); }),
      temp.path().string() + ": none of its checkpoints can be used:\n  " + best.string() +
          ": state: its bytes are not those that were saved\n  " + last.string() +
          ": state: its bytes are not those that were saved\nRestore what is missing. To start again, move these folders away, or set "
          "another exp_manager.explicit_log_dir.");
  std::filesystem::remove_all(best);
  write_atomic(last / "meta.json", "{");
  EXPECT_THAT(error_of([&] { return find_resume(in(temp), temp.path(), store); }), HasSubstr("meta.json"));
  std::filesystem::remove_all(last);
  make_folder(temp / "checkpoints/lost+found");  // nobody's checkpoint
  EXPECT_FALSE(find_resume(in(temp), temp.path(), store).has_value());
}

TEST(RunFolder, NumbersOfAnEarlierRunAreSetAside) {
  const TempFolder temp;
  set_metrics_aside(temp.path());
  for (const char* text : {"first", "second"}) {
    temp.file("metrics.jsonl", text);
    temp.file("samples.jsonl", "");
    set_metrics_aside(temp.path());
  }
  EXPECT_EQ(read_text(temp / "metrics.jsonl.before-1"), "first");
  EXPECT_EQ(read_text(temp / "metrics.jsonl.before-2"), "second");
  EXPECT_FALSE(is_file(temp / "metrics.jsonl"));
  EXPECT_FALSE(is_file(temp / "samples.jsonl.before-1"));
}

TEST(RunFolder, ACheckpointThatIsNotWholeIsNamed) {
  const TempFolder temp;
  CheckpointStore store(temp / "checkpoints", {.save_top_k = 0, .filename = "run-{step}"});
  save(store, 7);
  const Path folder = temp / "checkpoints/run-step=7-last";
  std::filesystem::remove(folder / "state");
  EXPECT_EQ(error_of([&] { return open_checkpoint(folder, "--fork"); }),
            "--fork: incomplete checkpoint: " + folder.string() + ": state is missing");
  EXPECT_THAT(error_of([&] { return open_checkpoint(temp / "none", "--fork"); }), HasSubstr("--fork: no folder"));
}

}  // namespace
}  // namespace kedge
