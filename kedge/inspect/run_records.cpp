#include "kedge/inspect/run_records.h"

#include "kedge/core/error.h"
#include "kedge/inspect/answer_list.h"
#include "kedge/rollout/record_file.h"

namespace kedge {

RunRecords::RunRecords(const std::string& run) : run_(run) {
  check(is_folder(run), run, ": no such folder");
  for (const Path& folder : {Path(run) / "rollouts", Path(run)}) {
    folder_ = folder;
    steps_ = recorded_steps(folder);
    if (!steps_.empty()) return;
  }
  throw UsageError(str(run, ": no answers in it (rollouts/step-N.jsonl); the online commands keep them unless rollouts.keep=none"));
}

int64_t RunRecords::choose(const std::string& wanted) const { return choose_step(steps_, wanted, run_); }

Path RunRecords::path(int64_t step) const { return record_path(folder_, step); }

RolloutRows RunRecords::rows(int64_t step) const {
  const Path file = path(step);
  const std::string text = read_text(file);
  const int64_t written = parse_record_header(text, file.string()).step;
  check(written == step, file.string(), ":1: has the answers of step ", written);
  return parse_record_rows(text, file.string(), RecordParts::all);
}

}  // namespace kedge
