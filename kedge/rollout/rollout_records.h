#pragma once
// Records every answer of a step on disk with all its results: for inspection, and for a resumed run, which need not generate
// them again.
#include <cstdint>
#include <optional>
#include <string>

#include "kedge/config/config_schema.h"
#include "kedge/core/files.h"
#include "kedge/core/serial_worker.h"
#include "kedge/rollout/rollout_row.h"
#include "kedge/rollout/step_store.h"

namespace kedge {

// Keys of `rollouts`.
struct RolloutsConfig {
  std::string keep = "all";

  void fields(auto&& field) { field("keep", keep, "steps whose responses are kept on disk: all, every:N or none"); }
};

// Record every N-th step; 0: none. UsageError for invalid keys.
[[nodiscard]] int64_t recorded_every(const RolloutsConfig& config);

// FOLDER/step-N.jsonl: a line about the step, then one for each row. Used from one thread; writes on another.
class RolloutRecords final : public StepStore {
 public:
  // UsageError for invalid keys. The folder is created with its first file; incomplete files of a killed run are removed.
  RolloutRecords(Path folder, const RolloutsConfig& config);

  // Returns at once. The file is complete or absent; a full disk is logged once and does not end the run.
  void save(RecordHeader header, RolloutRows rows) override;

  // The record of the step, if a resumed run would get the same answers again: with this fingerprint, to the prompts that the
  // file has now, and all of them with rewards. Logs it. One with another fingerprint or other prompts is of a run that was discarded:
  // it is removed with those of all later steps.
  [[nodiscard]] std::optional<RolloutRows> load(const StepKey& key) override;

  // What was written for the step with this fingerprint: of each row its rollout (without the prompt's row of the data file), slot and
  // reward. None if there is no such file, or it is damaged (with a warning).
  [[nodiscard]] std::optional<RolloutRows> read(int64_t step, const std::string& fingerprint);

  // Waits until all is on disk.
  void flush();

  [[nodiscard]] Path path_of(int64_t step) const;

 private:
  void write_file(const RecordHeader& header, const RolloutRows& rows);

  Path folder_;
  int64_t every_;             // 0: none
  bool told_ = false;         // that a file could not be written; the worker's
  SerialWorker worker_ = {};  // last, so that it ends before what it uses
};

}  // namespace kedge
