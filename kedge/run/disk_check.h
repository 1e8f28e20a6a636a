#pragma once
// How much room a run takes on disk, and whether that is there. Asked before weights are read, by kedge plan and by every run.
#include <algorithm>
#include <cstdint>
#include <string>

#include "kedge/core/files.h"
#include "kedge/train/checkpoint/run_folder.h"
#include "kedge/train/memory_plan.h"

namespace kedge {

struct DiskPlan {
  Path folder;                           // where the run's goes: this one, or the nearest above it that is there
  int64_t free = 0;                      // there
  int64_t held = 0;                      // by checkpoints of the run that goes on there, which make room for its next ones
  int64_t checkpoint = 0, num_kept = 0;  // bytes of one, and how many there are at the end
  int64_t model = 0;                     // the folder that a complete run leaves
  int64_t records = 0;                   // of all answers

  [[nodiscard]] int64_t needed() const { return checkpoint * num_kept + model + records; }
  // Without room for a checkpoint and the next one, which is written beside it, there is no second one.
  [[nodiscard]] bool fits() const { return 2 * checkpoint + model <= free + std::min(held, checkpoint); }
};

// Checkpoints of a network that trains as the memory plan has it; `save`: every so many steps, 0 for never.
[[nodiscard]] DiskPlan plan_disk(const RunConfig& run, int64_t max_steps, int64_t save, const MemoryInput& network);

// Bytes of the records of an online run: about, and where every answer is as long as it may be.
[[nodiscard]] int64_t record_bytes(int64_t num_answers, int64_t prompt_tokens, int64_t answer_tokens);

// UsageError where a second checkpoint has no room; a warning where the run will fill the disk before its end.
void require_disk(const DiskPlan& plan);

}  // namespace kedge
