#pragma once
// The cosines and sines a batch's tokens are turned by, from a table that grows as longer rows come.
#include "kedge/core/tensor.h"
#include "kedge/model/kernels/ops.h"
#include "kedge/model/kernels/packed_batch.h"

namespace kedge {

// Not thread-safe.
class RotaryTable {
 public:
  RotaryTable(const ModelConfig& config, at::Device device);

  // Turns queries and keys, which stand first in a row.
  [[nodiscard]] Rotation rotation(const PackedBatch& batch);
  // The same for tokens at any positions below `length`, which must be within what the model was made for where its rotation changes
  // beyond.
  [[nodiscard]] Rotation rotation(const Tensor& positions, int64_t length);
  // Row p turns a token at position p, for all positions below `length` at least.
  [[nodiscard]] Rotation table(int64_t length);

 private:
  [[nodiscard]] Tensor angles(int64_t num_positions, int64_t length) const;

  RopeConfig rope_;
  int64_t num_heads_, head_dim_;
  at::Device device_;
  Tensor cos_, sin_;  // [positions, dim / 2]
};

}  // namespace kedge
