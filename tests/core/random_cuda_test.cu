// The GPU draws the very bits the CPU draws.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "kedge/core/random.h"

namespace {

struct Draws {
  uint64_t bits;
  double uniform, normal;
};

__host__ __device__ Draws draw(uint64_t seed, uint64_t stream, uint64_t position) {
  const kedge::Random random(seed, stream);
  return {random.bits(position), random.uniform(position), random.normal(position)};
}

__global__ void draw_all(uint64_t seed, uint64_t stream, Draws* out, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = draw(seed, stream, static_cast<uint64_t>(i));
}

TEST(RandomCuda, TheGpuDrawsTheVeryBitsOfTheCpu) {
  int num_devices = 0;
  if (cudaGetDeviceCount(&num_devices) != cudaSuccess || num_devices == 0) GTEST_SKIP() << "no CUDA device";
  constexpr int kCount = 1 << 18;
  Draws* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, kCount * sizeof(Draws)), cudaSuccess);
  draw_all<<<kCount / 256, 256>>>(42, 9, device, kCount);
  std::vector<Draws> drawn(kCount);
  ASSERT_EQ(cudaMemcpy(drawn.data(), device, kCount * sizeof(Draws), cudaMemcpyDeviceToHost), cudaSuccess);
  cudaFree(device);
  for (int i = 0; i < kCount; ++i) {
    const Draws expected = draw(42, 9, static_cast<uint64_t>(i));
    ASSERT_EQ(drawn[i].bits, expected.bits) << i;
    ASSERT_EQ(drawn[i].uniform, expected.uniform) << i;
    ASSERT_EQ(std::bit_cast<uint64_t>(drawn[i].normal), std::bit_cast<uint64_t>(expected.normal)) << i;
  }
}

}  // namespace
