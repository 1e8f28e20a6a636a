#include <algorithm>

#include "kedge/core/bit_hash.h"
#include "kedge/train/checkpoint/bit_sum_launch.h"

namespace kedge::cuda {
namespace {

constexpr int kThreads = 256;

// Sums of integers do not depend on the order, so blocks may add theirs whenever they have them.
__global__ void bit_sum_kernel(BitSumLaunch l) {
  const int64_t count = l.rows * l.width, stride = static_cast<int64_t>(gridDim.x) * kThreads;
  uint64_t sum = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += stride) {
    const int64_t place = l.rows == 1 ? l.first + i : l.first + i / l.width * l.step + i % l.width;
    uint64_t factor = static_cast<uint64_t>(place + 1) * kPlaceStep;
    factor = (factor ^ factor >> kPlaceShift) * kPlaceSpread | 1U;
    sum += l.words[i] * factor;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(l.sum, static_cast<unsigned long long>(sum));
}

}  // namespace

void launch_bit_sum(const BitSumLaunch& launch, cudaStream_t stream) {
  constexpr int64_t kMostBlocks = 2112;
  const int64_t blocks = std::min((launch.rows * launch.width + kThreads - 1) / kThreads, kMostBlocks);
  if (blocks > 0) bit_sum_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(launch);
}

}  // namespace kedge::cuda
