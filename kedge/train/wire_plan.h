#pragma once
// How many bytes the ranks that train one model send each other, from the same layouts that training uses.
#include <cstdint>
#include <vector>

#include "kedge/dist/shard_layout.h"
#include "kedge/model/spec/parameter_layout.h"
#include "kedge/train/memory_plan.h"

namespace kedge {

struct WireInput {
  std::vector<ParameterSpec> network;  // all parameters of the network
  std::vector<ParameterSpec> trained;  // the same, or those of adapters on it
  bool has_adapters = false;
  int64_t element_bytes = 4;  // of the weights the network computes with
  Sharding sharding = Sharding::none;
  Collectives collectives = Collectives::ordered;
  int shard_ranks = 1, num_ranks = 1;
};

// What happens in some time.
struct WireEvents {
  int64_t passes = 0;   // of training, forward and backward
  int64_t updates = 0;  // of the weights
  int64_t wholes = 0;   // times that all weights are gathered: for generation, log-probabilities or validation
};

// What one rank sends to others.
struct WireBytes {
  int64_t in_group = 0;        // to those that hold other parts of the same copy: inside a node, if groups are nodes
  int64_t between_groups = 0;  // to those that hold the same part of other copies
};

[[nodiscard]] WireBytes wire_bytes(const WireInput& input, const WireEvents& events, int shard_rank);

// Ranks that compute every layer together.
struct TensorWireInput {
  int tensor_ranks = 1;
  int64_t layers = 0, hidden = 0, vocabulary = 0;
  int64_t element_bytes = 4;  // of what passes between layers
  bool recomputes = false;    // the activations of a layer in its backward pass
  bool divides_tokens = false;
};
// Tokens that they compute, each rank all of them.
struct TensorWireTokens {
  double trained = 0;  // forward and backward
  double seen = 0;     // forward alone
  double drawn = 0;    // sampled: their logits are put together
};
[[nodiscard]] TensorWireInput tensor_wire_input(const MemoryInput& input);
// What one rank sends to the others: outputs of layers and gradients of their inputs. Numbers per token are not counted.
[[nodiscard]] int64_t tensor_wire_bytes(const TensorWireInput& input, const TensorWireTokens& tokens);

// What the rank that sends most sends to others when weights move from training's layout to that of so many ranks that generate together.
[[nodiscard]] int64_t reshard_bytes(const MemoryInput& input, int tensor_ranks);

}  // namespace kedge
