#include "kedge/inspect/replay_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kedge/core/log.h"
#include "kedge/run/rs_job.h"
#include "kedge/train/checkpoint/run_record.h"

#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using kedge::testing::error_of;
using kedge::testing::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A folder that looks like one of a run, without anything computed.
struct ToyRun {
  TempFolder folder;
  Path data = folder.file("prompts.jsonl", "{}");

  ToyRun() {
    folder.file("config.yaml", settings(1e-3));
    RunFacts facts;
    facts.command_line = {"kedge", "rs"};
    facts.data_files = {data};
    add_run_record(folder.path(), run_record(facts));
  }
  [[nodiscard]] static std::string settings(double lr) {
    return str("pretrained_checkpoint: {restore_from_path: lm}\nmodel: {optim: {lr: ", lr, "}}\n");
  }
  [[nodiscard]] RunOnDisk open() const { return open_run(folder.path()); }
  void record(int64_t step) const {
    make_folder(folder / "rollouts");
    write_atomic(record_path(folder / "rollouts", step), format_record({.step = step, .fingerprint = "f"}, {}));
  }
  // Saved by a start with this learning rate.
  void checkpoint(int64_t step, double lr) const {
    CheckpointMeta meta;
    meta.counters["step"] = step;
    RsJob job;
    static_cast<void>(load_section(job.section(), ConfigText{"x", settings(lr)}, {}));
    meta.record.set("identity", to_json(section_node(job.section())));
    make_folder(folder / "checkpoints");
    write_checkpoint(folder / "checkpoints" / std::to_string(step), meta, [](const Path&) {});
  }
  [[nodiscard]] std::vector<int64_t> parts() const {
    std::vector<int64_t> from;
    const RunOnDisk run = open();
    RsJob job;
    for (const SettingsPart& part : settings_parts(run, job)) from.push_back(part.from);
    return from;
  }
};

TEST(ReplayRun, StepsAreThoseOfRecordsAndCheckpoints) {
  const ToyRun run;
  EXPECT_THAT(error_of([&] { return range_of(run.open()).last; }), HasSubstr("holds neither records"));
  run.record(2);
  run.record(5);
  EXPECT_THAT(range_of(run.open()).recorded, ElementsAre(2, 5));
  EXPECT_EQ(range_of(run.open()).first, 2);
  EXPECT_EQ(range_of(run.open()).last, 5);
  run.checkpoint(9, 1e-3);
  EXPECT_EQ(range_of(run.open()).last, 8);
}

TEST(ReplayRun, ChangedFilesAreNamed) {
  const ToyRun run;
  EXPECT_THAT(changed_inputs(run.open()), ElementsAre());
  write_atomic(run.data, "{ }");
  EXPECT_THAT(changed_inputs(run.open()), ElementsAre(run.data.string() + " has changed since the run was started"));
  std::filesystem::remove(run.data);
  EXPECT_THAT(changed_inputs(run.open()), ElementsAre(run.data.string() + " no longer exists"));
}

TEST(ReplayRun, SettingsThatChangedAreThoseOfTheCheckpointBehindAStep) {
  const ToyRun run;
  EXPECT_THAT(run.parts(), ElementsAre(0));
  run.checkpoint(3, 1e-3);
  EXPECT_THAT(run.parts(), ElementsAre(0));
  run.checkpoint(6, 1e-3);
  run.checkpoint(9, 2e-3);
  EXPECT_THAT(run.parts(), ElementsAre(0, 6, 9));  // steps 6 to 8 under another rate, and then under that of config.yaml
}

}  // namespace
}  // namespace kedge
