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

}  // namespace kedge
