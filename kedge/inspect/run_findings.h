#pragma once
// What is wrong with the files of a run, as far as it can be seen without computing a step: checkpoints that changed since they were
// written, records that cannot be read, steps that do not start with the weights that the one before ended with.
#include <cstdint>
#include <string>
#include <vector>

#include "kedge/inspect/run_on_disk.h"

namespace kedge {

struct Finding {
  int64_t step = 0;
  std::string what;  // names the file
};

// Of every checkpoint of the policy and of a critic in the run's folder, also of twins under two names: files of which a bit changed, and
// weights that are not those of its record. By step.
[[nodiscard]] std::vector<Finding> checkpoint_findings(const RunOnDisk& run);

// Of every record. By step.
[[nodiscard]] std::vector<Finding> record_findings(const RunOnDisk& run);

}  // namespace kedge
