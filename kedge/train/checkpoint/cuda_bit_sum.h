#pragma once
// The GPU's side of train/checkpoint/weights_hash; a build without CUDA has a stub.
#include "kedge/core/tensor.h"

namespace kedge::cuda {

// Adds to `sum`, int64 [], what rows of fp32 [rows, width] add to a bit_hash: each begins `step` places after the one before, the first
// at `first`.
void add_bit_sum(const Tensor& sum, const Tensor& rows, int64_t first, int64_t step);

}  // namespace kedge::cuda
