#pragma once
// The GPU's side of model/ops: one kernel each, on the current stream. A build without CUDA has stubs.
#include "kedge/model/kernels/op_kernels.h"

namespace kedge::cuda {

extern const OpKernels kernels;

void logit_gradient(const Tensor& logits, const Tensor& targets, const LogitStats& stats, const Tensor& dlogprob, const Tensor& dentropy,
                    const Tensor& out);

}  // namespace kedge::cuda
