#pragma once
// Does a training run fit into memory, and if not, what would? Asked before weights are read, by kedge plan and by every run.
#include <cstdint>
#include <string>
#include <vector>

#include "kedge/train/memory_plan.h"

namespace kedge::cli {

struct MemoryLimits {
  int64_t bytes = 0;       // free where the run computes
  int64_t micro_size = 1;  // of the pass that was planned: examples or tokens, and how few there may be
  bool saves = true;       // on a CPU the copy for a checkpoint lies beside the rest
  int64_t least_size = 1;
  std::string size_key = "micro_batch_size";  // what sets the size
};

struct MemoryVerdict {
  MemoryPlan plan;
  int64_t needed = 0;  // at most, where the run computes
  int64_t free = 0;    // there
  bool fits = true;
  bool blocks = false;                // only where a checkpoint is written from the very tensors, while training waits
  std::vector<std::string> remedies;  // settings that would fit, where it does not
};
[[nodiscard]] MemoryVerdict check_memory(const MemoryInput& input, const MemoryLimits& limits);

// UsageError where it does not fit: what it needs, what is free, and what would fit. `what` opens it: "the run".
void require_fit(const MemoryVerdict& verdict, const std::string& what);

// What is free now where a run computes: on this GPU, or on this machine.
[[nodiscard]] int64_t free_bytes(at::Device device);

}  // namespace kedge::cli
