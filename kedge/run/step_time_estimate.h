#pragma once
// How long a step will take, measured on the device with a network of one layer and of two: what the second one adds, every further
// layer adds. Takes seconds, and no weights are read.
#include <cstdint>
#include <optional>
#include <vector>

#include "kedge/engine/engine.h"
#include "kedge/engine/engine_memory.h"
#include "kedge/model/model.h"
#include "kedge/train/memory_plan.h"

namespace kedge {

// The maximum work of a step.
struct StepWork {
  MemoryInput pass;  // the network, and the largest pass of an update
  at::Device device = at::kCPU;
  double update_tokens = 0;  // forward and backward, of all passes
  double look_tokens = 0;    // forward alone
  int64_t num_updates = 1;
  // Generation; none if `answers` is 0.
  EngineConfig engine = {};
  std::optional<ModelConfig> generator = {};  // the shape that generates, if it is another
  int64_t answers = 0;                        // in total
  int64_t prompt_tokens = 0, answer_tokens = 0;
};

// Seconds per step.
struct Pace {
  double generate = 0, look = 0, update = 0;

  [[nodiscard]] double total() const { return generate + look + update; }
};
[[nodiscard]] Pace measure_pace(const StepWork& work);

// Rows of random tokens, always the same, for passes that are only timed.
[[nodiscard]] std::vector<std::vector<int32_t>> random_rows(int64_t rows, int64_t length, int64_t vocab_size);

}  // namespace kedge
