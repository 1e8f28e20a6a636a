#pragma once
// Keeps every answer of a step on disk with all that was found out about it: to look at, and for a resumed run, which need not generate
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

// Of every how many steps answers are kept; 0: of none. UsageError for keys that cannot be.
[[nodiscard]] int64_t recorded_every(const RolloutsConfig& config);

// FOLDER/step-N.jsonl: a line about the step, then one for each row. Used from one thread; writes on another.
class RolloutRecords final : public StepStore {
 public:
  // UsageError for keys that cannot be. The folder is made with its first file; what a killed run left half written in it goes.
  RolloutRecords(Path folder, const RolloutsConfig& config);

  // Returns at once. The file is whole or not there; a disk that takes no more is told once and does not end the run.
  void save(RecordHeader header, RolloutRows rows) override;

  // What was kept for the step, where a run that goes on would get the same answers again: with this fingerprint, to the prompts that the
  // file has now, and all of them judged. Says so.
  [[nodiscard]] std::optional<RolloutRows> load(const StepKey& key) override;

  // What was written for the step with this fingerprint: of each row its rollout (without the prompt's row of the data file), slot and
  // reward. None where there is no such file; also where it is damaged, with a warning.
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
