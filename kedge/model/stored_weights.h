#pragma once
// Where the weights that a rank stores are in the complete model, for moving them into another layout (dist/reshard.h).
#include <cstdint>
#include <vector>

#include "kedge/dist/reshard.h"
#include "kedge/model/parameters.h"

namespace kedge {

// A rectangle of a parameter in a row of stored elements.
struct StoredBlock {
  WeightBlock block;
  int64_t begin = 0, stride = 0;  // of its first element, and between rows
};

// A rank's place in a layout, as data.
struct StoredPlace {
  std::vector<ParameterPart> parts = {};  // what it computes with of each parameter; empty: everything
  bool is_cut = false;                    // over the ranks of a shard group, bucket by bucket; then it stores its own parts alone
  int shard_rank = 0, shard_ranks = 1, num_ranks = 1;
};

[[nodiscard]] std::vector<StoredBlock> stored_blocks(const std::vector<ParameterSpec>& whole, const StoredPlace& place);

// A view of the weights that a rank's parameters store, whatever the layout. They must outlive it.
class StoredWeights {
 public:
  explicit StoredWeights(const Parameters& parameters);

  [[nodiscard]] std::vector<WeightBlock> blocks() const;
  // [rows, columns] inside one of them.
  [[nodiscard]] Tensor view(const WeightBlock& block) const;

 private:
  const Parameters& parameters_;
  std::vector<std::vector<StoredBlock>> blocks_;  // by parameter
};

}  // namespace kedge
