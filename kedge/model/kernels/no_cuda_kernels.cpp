#include "kedge/core/no_cuda.h"
#include "kedge/model/kernels/cuda_kernels.h"

namespace kedge::cuda {
void norm(const Tensor&, const NormWeights&, Normed&) { fail_without_cuda(); }
void norm_backward(const Tensor&, const Tensor&, const Normed&, const NormWeights&, const Tensor&, const Tensor&) { fail_without_cuda(); }
void silu_gate(const Tensor&, const Tensor&) { fail_without_cuda(); }
void silu_gate_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&) { fail_without_cuda(); }
void rotate(const Tensor&, const Rotation&, bool) { fail_without_cuda(); }
void logit_stats(const Tensor&, const Tensor&, LogitStats&) { fail_without_cuda(); }
void logit_gradient(const Tensor&, const Tensor&, const LogitStats&, const Tensor&, const Tensor&, const Tensor&) { fail_without_cuda(); }

}  // namespace kedge::cuda
