#include "kedge/inspect/run_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/ones.h>

#include "kedge/inspect/replay_run.h"
#include "kedge/rollout/record_file.h"
#include "kedge/train/checkpoint/state_files.h"
#include "kedge/train/checkpoint/weights_hash.h"

#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using kedge::testing::TempFolder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Three records and a checkpoint of step 2, which fit together.
struct FoundRun {
  TempFolder folder;
  Tensor weights = at::ones({8});
  std::string hash = weights_hash(weights);

  FoundRun() {
    folder.file("config.yaml", "{}");
    folder.file("run.json", R"([{"command_line": ["kedge", "rs"], "folder": "/there"}])");
    record({.step = 0, .fingerprint = "f", .weights_before = "a", .weights_after = "b"});
    record({.step = 1, .fingerprint = "f", .weights_before = "b", .weights_after = hash});
    record({.step = 2, .fingerprint = "f", .weights_before = hash, .weights_after = "d"});
    CheckpointMeta meta;
    meta.counters["step"] = 2;
    make_folder(folder / "checkpoints");
    write_checkpoint(folder / "checkpoints" / "run-step=2", meta, [&](const Path& path) {
      StateSnapshot state;
      state.add("parameters", weights);
      state.write(path / "state");
    });
  }
  void record(const RecordHeader& header) const {
    make_folder(folder / "rollouts");
    write_atomic(record_path(folder / "rollouts", header.step), format_record(header, {}));
  }
  [[nodiscard]] RunOnDisk open() const { return open_run(folder.path()); }
  [[nodiscard]] Path state() const { return folder / "checkpoints" / "run-step=2" / "state" / "state.safetensors"; }
};

TEST(RunFindings, ASoundRunHasNone) {
  const FoundRun run;
  EXPECT_THAT(checkpoint_findings(run.open()), IsEmpty());
  EXPECT_THAT(record_findings(run.open()), IsEmpty());
  EXPECT_EQ(known_weights(run.open(), 2), run.hash);
  EXPECT_EQ(known_weights(run.open(), 3), "d");
  EXPECT_EQ(known_weights(run.open(), 9), std::nullopt);
}

TEST(RunFindings, AChangedBitOfACheckpointIsNamed) {
  const FoundRun run;
  std::string bytes = read_text(run.state());
  bytes.back() = static_cast<char>(static_cast<unsigned char>(bytes.back()) ^ 1U);
  write_atomic(run.state(), bytes);
  const std::vector<Finding> findings = checkpoint_findings(run.open());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].step, 2);
  EXPECT_EQ(findings[0].what, "checkpoints/run-step=2/state/state.safetensors: its bytes are not those that were saved");
}

TEST(RunFindings, ACheckpointOfOtherWeightsThanItsRecordsIsNamed) {
  FoundRun run;
  run.record({.step = 2, .fingerprint = "f", .weights_before = "other", .weights_after = "d"});
  const std::vector<Finding> findings = checkpoint_findings(run.open());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0].what, HasSubstr("are not those in the records of step 2 (other)"));
  const std::vector<Finding> records = record_findings(run.open());
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].step, 2);
  EXPECT_EQ(records[0].what, "rollouts/step-2.jsonl: starts with the weights other, but step 1 ended with " + run.hash);
}

TEST(RunFindings, WhatCannotBeReadIsNamed) {
  const FoundRun run;
  run.folder.file("rollouts/step-1.jsonl", "{\"step\":1,");
  write_atomic(run.state(), "short");
  const std::vector<Finding> records = record_findings(run.open()), checkpoints = checkpoint_findings(run.open());
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].step, 1);
  EXPECT_THAT(records[0].what, HasSubstr("step-1.jsonl:1: the file ends before this line does"));
  ASSERT_EQ(checkpoints.size(), 1U);
  EXPECT_EQ(checkpoints[0].step, 2);
  EXPECT_THAT(checkpoints[0].what, HasSubstr("incomplete checkpoint"));
}

}  // namespace
}  // namespace kedge
