#pragma once
// A hash of every bit of some weights, the same on every device.
#include <cstdint>
#include <string>

#include "kedge/core/tensor.h"

namespace kedge {

// 16 digits, those of bit_hash() over the weights' bytes. `weights`: fp32 [elements], contiguous, on any device.
[[nodiscard]] std::string weights_hash(const Tensor& weights);

// Its sum by tensor operations, on the weights' device: this many elements at a time, each of which needs about 40 bytes
// temporarily.
[[nodiscard]] uint64_t tensor_bit_sum(const Tensor& weights, int64_t elements_at_a_time);

}  // namespace kedge
