#include "kedge/train/optim/cuda_leaf_sums.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "kedge/train/optim/leaf_sums_launch.h"

namespace kedge::cuda {

Tensor leaf_sums(const Tensor& row, int64_t leaf) {
  const c10::cuda::CUDAGuard guard(row.device());
  const Tensor sums = at::empty({(row.numel() + leaf - 1) / leaf}, row.options().dtype(at::kDouble));
  launch_leaf_sums({row.const_data_ptr<float>(), sums.mutable_data_ptr<double>(), row.numel(), leaf},
                   c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return sums;
}

}  // namespace kedge::cuda
