#pragma once
// Does a critic server fit into memory, and where does the reward model it started from go? Asked before weights are read.
#include <string>

#include "kedge/algo/reference_policy.h"
#include "kedge/algo/serve_config.h"

#include "cli/memory_check.h"

namespace kedge::cli {

// The network as it will be, and what is free.
struct CriticRoom {
  ModelConfig network;
  HeadOptions head;
  at::ScalarType dtype = at::kFloat;
  bool is_cuda = false;
  int64_t free = 0;       // where it computes
  int64_t host_free = 0;  // in host memory
};

struct CriticMemory {
  ReferenceKind reward_model = ReferenceKind::resident;
  ReferenceBytes reward_bytes = {};  // 0 without one
  MemoryVerdict verdict;             // with it

  [[nodiscard]] std::string reward_model_text() const;  // "resident, 1.2 GiB"
};

// Training with micro_batch_size rows of full length is what takes most. `auto` is resident where that fits, else swapped. UsageError
// where host memory will not do.
[[nodiscard]] CriticMemory plan_critic_memory(const CriticServerConfig& config, const CriticRoom& room);

}  // namespace kedge::cli
