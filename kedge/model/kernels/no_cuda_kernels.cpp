#include "kedge/core/no_cuda.h"
#include "kedge/model/kernels/cuda_kernels.h"

namespace kedge::cuda {
namespace {

template <typename... Arguments>
void refuse(Arguments... /*unused*/) {
  fail_without_cuda();
}

}  // namespace

const OpKernels kernels = {refuse, refuse, refuse, refuse, refuse, refuse};

void logit_gradient(const Tensor&, const Tensor&, const LogitStats&, const Tensor&, const Tensor&, const Tensor&) { fail_without_cuda(); }

Tensor join_attended(const Tensor&, const Tensor&, const Tensor&, const Tensor&) { fail_without_cuda(); }

bool has_head_norms(const Tensor&, const HeadNorms&) { return false; }
HeadNormed norm_heads(const Tensor&, const HeadNorms&) { fail_without_cuda(); }
void norm_heads_backward_(const Tensor&, const Tensor&, const Normed&, const Normed&, const HeadNorms&) { fail_without_cuda(); }

}  // namespace kedge::cuda
