#include "kedge/core/error.h"
#include "kedge/model/cuda_kernels.h"

namespace kedge::cuda {
namespace {

[[noreturn]] void fail() { throw Error("this kedge was built without CUDA; build it with: scripts/build cuda"); }

}  // namespace

void norm(const Tensor&, const NormWeights&, Normed&) { fail(); }
void norm_backward(const Tensor&, const Tensor&, const Normed&, const NormWeights&, const Tensor&, const Tensor&) { fail(); }
void silu_gate(const Tensor&, const Tensor&) { fail(); }
void silu_gate_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&) { fail(); }
void rotate(const Tensor&, const Rotation&, bool) { fail(); }
void logit_stats(const Tensor&, const Tensor&, LogitStats&) { fail(); }
void logit_gradient(const Tensor&, const Tensor&, const LogitStats&, const Tensor&, const Tensor&, const Tensor&) { fail(); }

}  // namespace kedge::cuda
