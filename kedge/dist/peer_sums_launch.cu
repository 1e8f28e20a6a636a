#include <cuda_bf16.h>

#include "kedge/dist/peer_sums_launch.h"

namespace kedge::cuda {
namespace {

using Room = PeerSumRoom;

constexpr int kThreads = 512;

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline void narrow(float x, float& to) { to = x; }
__device__ inline void narrow(float x, __nv_bfloat16& to) { to = __float2bfloat16_rn(x); }

// 16 bytes of a row.
template <typename T>
struct alignas(16) Wide {
  T values[16 / sizeof(T)];
};

__device__ inline void raise_flag(unsigned* flag, unsigned epoch) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(epoch) : "memory");
}

__device__ inline unsigned read_flag(const unsigned* flag) {
  unsigned value = 0;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

// The flag that a rank raises in the memory of another when its block has put down its numbers.
__device__ inline unsigned* flag_of(std::byte* memory, int rank, unsigned block) {
  return reinterpret_cast<unsigned*>(memory) + static_cast<unsigned>(rank) * Room::kMaxBlocks + block;
}

// Every rank's same block meets here: numbers put down before are seen by all after. Each thread waits for one rank.
__device__ inline void meet(const PeerSumLaunch& l, unsigned epoch) {
  __syncthreads();
  const int other = static_cast<int>(threadIdx.x);
  if (other < l.ranks && other != l.rank) {
    __threadfence_system();
    raise_flag(flag_of(l.memory[other], l.rank, blockIdx.x), epoch);
    const unsigned* flag = flag_of(l.memory[l.rank], other, blockIdx.x);
    while (static_cast<int>(read_flag(flag) - epoch) < 0) {
    }
  }
  __syncthreads();
}

// One element, or 16 bytes of them.
template <typename Unit, typename T>
__device__ inline Unit sum_of(const PeerSumLaunch& l, const Unit& own, int64_t offset, int64_t index) {
  constexpr int kEach = sizeof(Unit) / sizeof(T);
  float sums[kEach];
  for (int member = 0; member < l.count; ++member) {
    const int rank = l.first + member;
    const Unit read = rank == l.rank ? own : reinterpret_cast<const Unit*>(l.memory[rank] + offset)[index];
    const T* values = reinterpret_cast<const T*>(&read);
#pragma unroll
    for (int i = 0; i < kEach; ++i) sums[i] = member == 0 ? widen(values[i]) : sums[i] + widen(values[i]);
  }
  Unit result;
#pragma unroll
  for (int i = 0; i < kEach; ++i) narrow(sums[i], reinterpret_cast<T*>(&result)[i]);
  return result;
}

template <typename Unit, typename T>
__device__ void sum_slice(const PeerSumLaunch& l, Unit* own, int64_t units, unsigned epoch) {
  const int64_t offset = Room::kNumbers + static_cast<int64_t>(epoch & 1U) * Room::kHalfBytes + blockIdx.x * Room::kBlockBytes;
  Unit* shown = reinterpret_cast<Unit*>(l.memory[l.rank] + offset);
  for (int64_t i = threadIdx.x; i < units; i += kThreads) shown[i] = own[i];
  meet(l, epoch);
  for (int64_t i = threadIdx.x; i < units; i += kThreads) own[i] = sum_of<Unit, T>(l, own[i], offset, i);
}

// Each block adds up a slice, whichever way the other blocks are. The halves take turns: a block that fills one again has met the others
// since, and they came there with the numbers of that half read.
template <typename T>
__global__ void peer_sum_kernel(PeerSumLaunch l, int64_t slice, bool is_wide) {
  unsigned* counter = reinterpret_cast<unsigned*>(l.memory[l.rank] + Room::kCounters) + blockIdx.x;
  const unsigned epoch = *counter + 1;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * slice;
  const int64_t length = begin + slice < l.size ? slice : l.size - begin;
  T* own = static_cast<T*>(l.row) + begin;
  if (is_wide) {
    sum_slice<Wide<T>, T>(l, reinterpret_cast<Wide<T>*>(own), length * static_cast<int64_t>(sizeof(T)) / 16, epoch);
  } else {
    sum_slice<T, T>(l, own, length, epoch);
  }
  __syncthreads();  // all threads have read the counter
  if (threadIdx.x == 0) *counter = epoch;
}

template <typename T>
void launch(const PeerSumLaunch& l, cudaStream_t stream) {
  constexpr int64_t kEach = 16 / sizeof(T);
  const bool is_wide = l.size % kEach == 0 && reinterpret_cast<uintptr_t>(l.row) % 16 == 0;
  const int64_t per_block = kThreads * kEach, most = Room::kMaxBlocks;
  const int64_t wanted = (l.size + per_block - 1) / per_block, blocks = wanted < most ? wanted : most;
  const int64_t slice = (l.size + blocks * kEach - 1) / (blocks * kEach) * kEach;
  const auto used = static_cast<unsigned>((l.size + slice - 1) / slice);
  peer_sum_kernel<T><<<used, kThreads, 0, stream>>>(l, slice, is_wide);
}

}  // namespace

void launch_peer_sum(const PeerSumLaunch& l, cudaStream_t stream) {
  if (l.size == 0) return;
  if (l.is_bf16) {
    launch<__nv_bfloat16>(l, stream);
  } else {
    launch<float>(l, stream);
  }
}

}  // namespace kedge::cuda
