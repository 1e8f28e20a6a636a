#pragma once
// How many bytes the ranks that train one model send each other, from the same layouts that training uses.
#include <cstdint>
#include <vector>

#include "kedge/dist/shard_layout.h"
#include "kedge/model/spec/parameter_layout.h"

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

}  // namespace kedge
