#pragma once
// The answers that a run recorded, step by step: of RUN/rollouts, or of such a folder itself. Reads only; the run may be active.
#include <cstdint>
#include <string>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge {

class RunRecords {
 public:
  // A missing folder, or one without records, is a UsageError.
  explicit RunRecords(const std::string& run);

  [[nodiscard]] const std::string& run() const { return run_; }
  [[nodiscard]] const std::vector<int64_t>& steps() const { return steps_; }  // as of the construction, rising
  [[nodiscard]] int64_t choose(const std::string& wanted) const;              // a step: its number, first or last
  [[nodiscard]] Path path(int64_t step) const;                                // of its file
  [[nodiscard]] RolloutRows rows(int64_t step) const;                         // UsageError for one that is damaged

 private:
  std::string run_;
  Path folder_;
  std::vector<int64_t> steps_;
};

}  // namespace kedge
