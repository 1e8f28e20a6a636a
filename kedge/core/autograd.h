#pragma once
// Access to torch for the few sources that need more than recording: backward passes and functions with their own backward.
// Slow to compile (about 10 s per file); include it in a .cpp only.
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/grad_mode.h>

#include "kedge/core/tensor.h"

namespace kedge {

using NoGrad = at::NoGradGuard;
using torch::autograd::AutogradContext;

// Gradients of a scalar, accumulated into the leaves' .grad.
inline void backward(const Tensor& loss) { torch::autograd::backward({loss}, {}); }

}  // namespace kedge
