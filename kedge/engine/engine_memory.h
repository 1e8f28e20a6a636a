#pragma once
// How much memory generation takes, before anything is allocated: keys and values, and what a step needs for computing.
#include <cstdint>

#include "kedge/core/tensor.h"
#include "kedge/engine/scheduler.h"
#include "kedge/model/spec/model_config.h"

namespace kedge {

struct EngineInput {
  const ModelConfig& model;
  at::ScalarType dtype = at::kFloat;
  bool is_cuda = false;
  bool use_graphs = true;
  SchedulerConfig scheduler = {};
  int64_t answers = 1;  // requested
  int64_t usual = 0;    // tokens of prompt and answer if there is room for all of them
  int64_t longest = 0;  // that one may have
};

// In bytes.
struct EngineBytes {
  int64_t cache = 0;      // keys and values of all answers that may run at a time
  int64_t one = 0;        // and of one, with the unused block: the minimum for generation
  int64_t workspace = 0;  // in addition
};
[[nodiscard]] EngineBytes engine_bytes(const EngineInput& input);

}  // namespace kedge
