#pragma once
// Memory of a tensor that comes and goes while views of the tensor stay valid.
#include "kedge/core/tensor.h"

namespace kedge {

// A row of `size` elements without memory.
[[nodiscard]] Tensor row_without_memory(int64_t size, const at::TensorOptions& options);

[[nodiscard]] bool has_memory(const Tensor& row);
// Its content is undefined. Nothing to do where there is memory already.
void take_memory(const Tensor& row);
void give_memory_back(const Tensor& row);

}  // namespace kedge
