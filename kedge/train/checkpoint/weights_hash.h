#pragma once
// A hash of every bit of some weights, the same on every device.
#include <cstdint>
#include <string>

#include "kedge/core/tensor.h"
#include "kedge/model/parameters.h"

namespace kedge {

// 16 digits, those of bit_hash() over the weights' bytes. `weights`: fp32 [elements], contiguous, on any device.
[[nodiscard]] std::string weights_hash(const Tensor& weights);
// Of the master weights, whichever ranks hold them. Collective.
[[nodiscard]] std::string weights_hash(const Parameters& parameters);

// The sum by tensor operations, on the weights' device, of weights that begin at place `first`: this many elements at a time, each of
// which needs about 40 bytes temporarily.
[[nodiscard]] uint64_t tensor_bit_sum(const Tensor& weights, int64_t elements_at_a_time, int64_t first = 0);
// The same of [rows, width], each of which begins `step` places after the one before.
[[nodiscard]] uint64_t tensor_bit_sum(const Tensor& rows, int64_t elements_at_a_time, int64_t first, int64_t step);

}  // namespace kedge
