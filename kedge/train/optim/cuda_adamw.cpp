#include "kedge/train/optim/cuda_adamw.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "kedge/train/optim/adamw_launch.h"

namespace kedge::cuda {

void adamw_update(const AdamWTensors& t, const AdamWFactors& f) {
  const c10::cuda::CUDAGuard guard(t.master.device());
  launch_adamw(
      {t.master.mutable_data_ptr<float>(), t.gradient.const_data_ptr<float>(), t.first.mutable_data_ptr(), t.second.mutable_data_ptr(),
       t.first.scalar_type() == at::kBFloat16, t.published.defined() ? t.published.mutable_data_ptr() : nullptr, t.master.numel(),
       f.grad_scale, f.beta1, f.one_minus_beta1, f.beta2, f.one_minus_beta2, f.keep, f.rate, f.second_scale, f.eps},
      c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace kedge::cuda
