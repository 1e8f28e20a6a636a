#pragma once
// The GPU's side of train/optim/gradient_norm; a build without CUDA has a stub.
#include "kedge/core/tensor.h"

namespace kedge::cuda {

// fp64 [leaves]: the sums of squares of a row of fp32, leaf by leaf.
[[nodiscard]] Tensor leaf_sums(const Tensor& row, int64_t leaf);

}  // namespace kedge::cuda
