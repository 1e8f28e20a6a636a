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

// Into how many parts a GPU divides a query's keys, for `rows` queries of at most `longest` keys: more than one if there are too few
// queries to keep it busy, or if sequences decode of which one is so long that the others would wait for it. The parts' sums take memory.
[[nodiscard]] int64_t key_splits(int64_t rows, int64_t num_kv_heads, int64_t longest, bool decodes);

}  // namespace kedge
