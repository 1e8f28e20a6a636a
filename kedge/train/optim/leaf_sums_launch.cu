#include "kedge/train/optim/leaf_sums_launch.h"

namespace kedge::cuda {
namespace {

constexpr int kThreads = 256;

// A block sums one leaf, in an order that depends on nothing else.
__global__ void leaf_sums_kernel(LeafSumsLaunch l) {
  __shared__ double parts[kThreads];
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * l.leaf;
  const int64_t end = begin + l.leaf < l.size ? begin + l.leaf : l.size;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) sum += static_cast<double>(l.values[i]) * static_cast<double>(l.values[i]);
  parts[threadIdx.x] = sum;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
  }
  if (threadIdx.x == 0) l.sums[blockIdx.x] = parts[0];
}

}  // namespace

void launch_leaf_sums(const LeafSumsLaunch& launch, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((launch.size + launch.leaf - 1) / launch.leaf);
  if (blocks > 0) leaf_sums_kernel<<<blocks, kThreads, 0, stream>>>(launch);
}

}  // namespace kedge::cuda
