#include "kedge/train/checkpoint/cuda_bit_sum.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "kedge/core/error.h"
#include "kedge/train/checkpoint/bit_sum_launch.h"

namespace kedge::cuda {

void add_bit_sum(const Tensor& sum, const Tensor& rows, int64_t first, int64_t step) {
  ensure(rows.is_contiguous(), "rows to hash must be contiguous");
  const c10::cuda::CUDAGuard guard(rows.device());
  launch_bit_sum({static_cast<const uint32_t*>(rows.const_data_ptr()), rows.size(0), rows.size(1), first, step,
                  reinterpret_cast<unsigned long long*>(sum.mutable_data_ptr<int64_t>())},
                 c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace kedge::cuda
