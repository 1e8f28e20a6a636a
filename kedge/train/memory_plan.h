#pragma once
// How much memory a supervised training run takes, before anything is allocated: what stays between steps is counted from the shapes, and a
// step is played through tensor by tensor as the model's forward and backward passes allocate and free them.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/core/tensor.h"
#include "kedge/model/lora_config.h"
#include "kedge/model/model_config.h"
#include "kedge/model/weight_table.h"
#include "kedge/train/optimizer.h"

namespace kedge {

struct MemoryInput {
  ModelConfig model;
  HeadOptions head;
  at::ScalarType dtype = at::kFloat;
  bool is_cuda = false;
  std::optional<LoraConfig> lora;  // otherwise everything trains
  OptimizerConfig optimizer;
  int num_ranks = 1;  // that share the moments
  // The largest micro-batch: tokens in all its rows, and those of its longest row.
  int64_t tokens = 0, rows = 1, longest = 0;
  bool checkpoint = false;
  int64_t threads = 1;
};

// In bytes, a rank.
struct MemoryPlan {
  // In the memory of the device that trains.
  int64_t parameters = 0, master_weights = 0, gradients = 0, optimizer = 0;
  int64_t activations = 0;  // at their most: what a forward pass keeps for its backward
  int64_t workspace = 0;    // what comes and goes on top of them at the worst moment
  int64_t fixed = 0;        // the program and its libraries
  // In host memory, beside the above where the host trains.
  int64_t host_optimizer = 0;  // offloaded moments
  int64_t snapshot = 0;        // rank 0's copy of weights and moments while a checkpoint is written
  bool is_cuda = false;

  [[nodiscard]] int64_t total() const { return parameters + master_weights + gradients + optimizer + fixed; }  // between steps
  [[nodiscard]] int64_t peak() const { return total() + activations + workspace; }
  // What the allocator of the device's tensors holds at most: on CUDA without the driver's own.
  [[nodiscard]] int64_t peak_of_tensors() const { return is_cuda ? peak() - fixed : peak(); }

  [[nodiscard]] std::string table() const;  // lines of at most 80 columns
  [[nodiscard]] Json json() const;
};

[[nodiscard]] MemoryPlan plan_memory(const MemoryInput& input);

}  // namespace kedge
