#pragma once
// Does a critic server fit into memory, and where is its initial reward model kept? Checked before weights are read.
#include <string>

#include "kedge/critic/serve_config.h"
#include "kedge/run/memory_check.h"
#include "kedge/train/reference_policy.h"

namespace kedge {

// The network as it will be, and what is free.
struct CriticRoom {
  ModelConfig network;
  HeadOptions head;
  at::ScalarType dtype = at::kFloat;
  bool is_cuda = false;
  ShardOptions shards = {};
  int tensor_ranks = 1;
  MemoryRoom free = {};
};

struct CriticMemory {
  ReferenceKind reward_model = ReferenceKind::resident;
  ReferenceBytes reward_bytes = {};  // 0 without one
  MemoryFit verdict;                 // with it

  [[nodiscard]] std::string reward_model_text() const;  // "resident, 1.2 GiB"
};

// Assumes rows of full length, in training and for values. `auto` is resident if that fits, else swapped.
[[nodiscard]] CriticMemory plan_critic_memory(const CriticServerConfig& config, const CriticRoom& room);

}  // namespace kedge
