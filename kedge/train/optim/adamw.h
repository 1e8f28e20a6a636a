#pragma once
// AdamW over slices of flat buffers: one pass reads and writes everything, including the network's weights. For CPU and CUDA.
#include <cstdint>

#include "kedge/core/tensor.h"

namespace kedge {

struct AdamWStep {
  double lr = 0, beta1 = 0.9, beta2 = 0.98, eps = 1e-8, weight_decay = 0;
  int64_t step = 1;       // counts from 1
  double grad_scale = 1;  // gradients are multiplied by it first
};

// One-dimensional, of one length, contiguous. Moments are fp32 or bf16.
struct AdamWTensors {
  Tensor master, gradient, first, second;
  Tensor published;  // undefined, or the same weights in the network's own type
};

// weight -= lr * (first^ / (sqrt(second^) + eps) + weight_decay * weight), with the moments' usual corrections for their start at zero.
void adamw_update(const AdamWTensors& tensors, const AdamWStep& step);

}  // namespace kedge
