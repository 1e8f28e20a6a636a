#pragma once
// How much disk space a run takes, and whether it is available. Checked before weights are read, by kedge plan and by every run.
#include <algorithm>
#include <cstdint>
#include <string>

#include "kedge/core/files.h"
#include "kedge/train/checkpoint/run_folder.h"
#include "kedge/train/memory_plan.h"

namespace kedge {

struct DiskPlan {
  Path folder;                           // the run's folder, or its nearest existing parent
  int64_t free = 0;                      // there
  int64_t held = 0;                      // by checkpoints of the resumed run, which are replaced by its next ones
  int64_t checkpoint = 0, num_kept = 0;  // bytes of one, and how many there are at the end
  int64_t model = 0;                     // the model folder of a complete run
  int64_t records = 0;                   // of all answers

  [[nodiscard]] int64_t needed() const { return checkpoint * num_kept + model + records; }
  // Without space for two checkpoints, the second one cannot be written.
  [[nodiscard]] bool fits() const { return 2 * checkpoint + model <= free + std::min(held, checkpoint); }
};

// Checkpoints of a network trained as in the memory plan; `save`: the interval in steps, 0 for never.
[[nodiscard]] DiskPlan plan_disk(const RunConfig& run, int64_t max_steps, int64_t save, const MemoryInput& network);

// Bytes of the records of an online run: approximate, if every answer has the maximum length.
[[nodiscard]] int64_t record_bytes(int64_t num_answers, int64_t prompt_tokens, int64_t answer_tokens);

// UsageError if there is no space for a second checkpoint; a warning if the run will fill the disk before its end.
void require_disk(const DiskPlan& plan);

}  // namespace kedge
