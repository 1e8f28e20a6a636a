#pragma once
// A short name for weights that every bit of them decides, the same on every device.
#include <cstdint>
#include <string>

#include "kedge/core/tensor.h"

namespace kedge {

// 16 digits, those of bit_hash() over the weights' bytes. `weights`: fp32 [elements], contiguous, on any device.
[[nodiscard]] std::string weights_hash(const Tensor& weights);

// The sum behind it as tensor operations find it, where the weights lie: so many elements at a time, for each of which some 40 bytes are
// needed meanwhile.
[[nodiscard]] uint64_t tensor_bit_sum(const Tensor& weights, int64_t elements_at_a_time);

}  // namespace kedge
