#pragma once
// The kernel of peer_sums.h on raw pointers: nvcc compiles no torch headers.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace kedge::cuda {

// A rank's memory: a flag per rank and block, a counter per block, then two halves for the numbers, in which every block has its own room.
struct PeerSumRoom {
  static constexpr int kMaxRanks = 8, kMaxBlocks = 64;
  static constexpr int64_t kBlockBytes = int64_t{128} << 10;
  static constexpr int64_t kCounters = int64_t{kMaxRanks} * kMaxBlocks * 4;  // where they begin
  static constexpr int64_t kNumbers = int64_t{16} << 10;
  static constexpr int64_t kHalfBytes = kBlockBytes * kMaxBlocks;
  static constexpr int64_t kBytes = kNumbers + 2 * kHalfBytes;
};
static_assert(PeerSumRoom::kCounters + PeerSumRoom::kMaxBlocks * 4 <= PeerSumRoom::kNumbers);

struct PeerSumLaunch {
  void* row;
  int64_t size;  // of the row, at most PeerSumRoom::kHalfBytes
  bool is_bf16;  // else fp32
  int rank, ranks;
  int first, count;  // the ranks whose numbers are added
  std::byte* memory[PeerSumRoom::kMaxRanks];
};
void launch_peer_sum(const PeerSumLaunch& launch, cudaStream_t stream);

}  // namespace kedge::cuda
