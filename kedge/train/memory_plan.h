#pragma once
// How much memory training a network takes, before anything is allocated: what is kept between steps is computed from the shapes, and a
// step is simulated tensor by tensor as the model's forward and backward passes allocate and free them.
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
  int num_ranks = 1, shard_ranks = 1;  // in all, and of those that share one copy of the model
  int tensor_ranks = 1;                // that compute together what is one rank otherwise
  int token_ranks = 1;                 // as many if they divide the tokens between the layers' products (model/token_slices.h)
  Sharding sharding = Sharding::none;
  // The largest micro-batch: tokens of all its rows, and of its longest row.
  int64_t tokens = 0, rows = 1, longest = 0;
  int64_t prompts = 0, answers = 0;  // prompts that it computes once, and the rows that share them
  int64_t kept_logits = 0;           // as in StorageOptions
  bool checkpoint = false;
  int64_t threads = 1;
};

// In bytes, per rank.
struct MemoryPlan {
  // In the memory of the device that trains.
  int64_t parameters = 0, master_weights = 0, gradients = 0, optimizer = 0;
  int64_t activations = 0;  // peak: what a forward pass keeps for its backward
  int64_t workspace = 0;    // temporary tensors on top of them at the peak
  int64_t slack = 0;        // fragmentation of the GPU's allocator
  int64_t look = 0;         // memory of a forward-only pass of the same size
  int64_t gathered = 0;     // weights of other ranks while all are gathered: in generation and for forward-only passes
  int64_t fixed = 0;        // the program and its libraries
  // In host memory, in addition to the above if the host trains.
  int64_t host_optimizer = 0;  // offloaded moments
  int64_t snapshot = 0;        // a copy of the rank's weights and moments while a checkpoint is written
  bool is_cuda = false;

  [[nodiscard]] int64_t total() const { return parameters + master_weights + gradients + optimizer + fixed; }  // between steps
  [[nodiscard]] int64_t peak() const { return total() + activations + workspace + slack; }
  // Peak memory of tensors on a GPU; on a CPU the process is what can be measured.
  [[nodiscard]] int64_t peak_of_tensors() const { return is_cuda ? peak() - fixed - slack : peak(); }

  [[nodiscard]] std::string table() const;  // lines of at most 80 columns
  [[nodiscard]] Json json() const;
};

// The same as what one of the ranks computes that split it: the last, whose share of the vocabulary is the largest.
[[nodiscard]] MemoryInput of_one_rank(const MemoryInput& input);

[[nodiscard]] MemoryPlan plan_memory(const MemoryInput& input);

// Memory of a network for inference: its weights, and a forward-only pass. Without the program itself.
struct ForwardMemory {
  int64_t parameters = 0, pass = 0;
};
[[nodiscard]] ForwardMemory plan_forward(const MemoryInput& input);

// A copy of the weights as so many ranks generate with them together, and what is on its way to it.
[[nodiscard]] int64_t resharded_bytes(const MemoryInput& input, int tensor_ranks);

// Size of a tensor in pinned host memory: a power of two.
[[nodiscard]] int64_t pinned_bytes(int64_t bytes);

// The program and its libraries: in the machine's memory, or what a process takes on a GPU in addition to its tensors.
[[nodiscard]] int64_t process_bytes(bool is_cuda);
// Of the latter, what is taken when the process first uses the GPU; the rest comes with kernels and CUDA graphs.
[[nodiscard]] int64_t context_bytes();
// Host memory of a process that computes on a GPU.
[[nodiscard]] int64_t gpu_host_bytes();

}  // namespace kedge
