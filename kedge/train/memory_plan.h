#pragma once
// How much memory training a network takes, before anything is allocated: what stays between steps is counted from the shapes, and a
// step is played through tensor by tensor as the model's forward and backward passes allocate and free them.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/json.h"
#include "kedge/core/tensor.h"
#include "kedge/model/spec/lora_config.h"
#include "kedge/model/spec/model_config.h"
#include "kedge/model/spec/parameter_layout.h"
#include "kedge/train/optim/optimizer.h"

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
  int64_t slack = 0;        // what a GPU's allocator holds between its pieces
  int64_t look = 0;         // what a pass of the same size takes that keeps nothing
  int64_t fixed = 0;        // the program and its libraries
  // In host memory, beside the above where the host trains.
  int64_t host_optimizer = 0;  // offloaded moments
  int64_t snapshot = 0;        // rank 0's copy of weights and moments while a checkpoint is written
  bool is_cuda = false;

  [[nodiscard]] int64_t total() const { return parameters + master_weights + gradients + optimizer + fixed; }  // between steps
  [[nodiscard]] int64_t peak() const { return total() + activations + workspace + slack; }
  // What tensors alone take at most on a GPU; on a CPU the process is what can be measured.
  [[nodiscard]] int64_t peak_of_tensors() const { return is_cuda ? peak() - fixed - slack : peak(); }

  [[nodiscard]] std::string table() const;  // lines of at most 80 columns
  [[nodiscard]] Json json() const;
};

[[nodiscard]] MemoryPlan plan_memory(const MemoryInput& input);

// What a network takes that does not train: its weights, and a pass that keeps nothing. Without what the program itself takes.
struct ForwardMemory {
  int64_t parameters = 0, pass = 0;
};
[[nodiscard]] ForwardMemory plan_forward(const MemoryInput& input);

// What the allocator of host memory that a GPU can reach takes for a tensor: a power of two.
[[nodiscard]] int64_t pinned_bytes(int64_t bytes);

// The program and its libraries: in the machine's memory, or what a GPU holds for a process beside its tensors.
[[nodiscard]] int64_t process_bytes(bool is_cuda);
// Of the latter, what is taken as soon as the process has looked at the GPU; the rest comes with kernels and recorded steps.
[[nodiscard]] int64_t context_bytes();
// What a process that computes on a GPU takes of the machine's memory.
[[nodiscard]] int64_t gpu_host_bytes();

}  // namespace kedge
