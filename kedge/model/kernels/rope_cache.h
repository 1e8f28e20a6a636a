#pragma once
// The cosines and sines that rotate a batch's tokens, from a table that grows with longer rows.
#include "kedge/core/tensor.h"
#include "kedge/model/kernels/ops.h"
#include "kedge/model/kernels/packed_batch.h"

namespace kedge {

// Not thread-safe.
class RotaryTable {
 public:
  RotaryTable(const ModelConfig& config, at::Device device);

  // Rotates queries and keys, which are first in a row.
  [[nodiscard]] Rotation rotation(const PackedBatch& batch);
  // The same for tokens at any positions below `length`, which must be within the model's original length if its rotation changes
  // beyond.
  [[nodiscard]] Rotation rotation(const Tensor& positions, int64_t length);
  // Row p rotates a token at position p, at least for all positions below `length`.
  [[nodiscard]] Rotation table(int64_t length);

 private:
  struct Turns {
    Tensor cos, sin;  // fp32 [positions, dim / 2], on the CPU
  };
  [[nodiscard]] Turns turns(int64_t num_positions, int64_t length) const;

  RopeConfig rope_;
  int64_t num_heads_, head_dim_;
  at::Device device_;
  Tensor cos_, sin_;  // [positions, dim / 2]
};

}  // namespace kedge
