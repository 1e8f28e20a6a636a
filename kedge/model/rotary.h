#pragma once
// The cosines and sines a batch's tokens are turned by, from a table that grows as longer rows come.
#include "kedge/core/tensor.h"
#include "kedge/model/ops.h"
#include "kedge/model/packed_batch.h"

namespace kedge {

// Not thread-safe.
class RotaryTable {
 public:
  RotaryTable(const ModelConfig& config, at::Device device);

  // Turns queries and keys, which stand first in a row.
  [[nodiscard]] Rotation rotation(const PackedBatch& batch);

 private:
  [[nodiscard]] Tensor angles(int64_t num_positions, int64_t length) const;

  RopeConfig rope_;
  int64_t num_heads_, head_dim_;
  at::Device device_;
  Tensor cos_, sin_;  // [positions, dim / 2]
};

}  // namespace kedge
