#include "kedge/dist/peer_sums.h"

#include <algorithm>
#include <vector>

#include <c10/core/DeviceGuard.h>

#include "kedge/core/cuda_device.h"
#include "kedge/core/cuda_error.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/dist/peer_memory.h"
#include "kedge/dist/peer_sums_launch.h"
#include "kedge/dist/rank_places.h"

namespace kedge {
namespace {

using Room = cuda::PeerSumRoom;

class MappedSums final : public PeerSums {
 public:
  MappedSums(const Group& group, at::Device device, bool share_a_gpu)
      : rank_(group.rank()), size_(group.size()), device_(device), share_a_gpu_(share_a_gpu), memory_(group, device, Room::kBytes) {}

  void sum_(const Tensor& row, int first, int count) override {
    ensure(row.device() == device_ && row.is_contiguous() && is_summable(row), "a sum over ranks of ", row.dtype().name(), " on ",
           name_of(row.device()));
    cuda::PeerSumLaunch launch{.row = nullptr,
                               .size = 0,
                               .is_bf16 = row.scalar_type() == at::kBFloat16,
                               .rank = rank_,
                               .ranks = size_,
                               .first = first,
                               .count = count,
                               .memory = {}};
    for (int rank = 0; rank < size_; ++rank) launch.memory[rank] = memory_[rank];
    const c10::DeviceGuard guard(device_);
    const int64_t bytes = static_cast<int64_t>(row.element_size()), most = Room::kHalfBytes / bytes;
    for (int64_t start = 0; start < row.numel(); start += most) {
      launch.row = static_cast<std::byte*>(row.data_ptr()) + start * bytes;
      launch.size = std::min(most, row.numel() - start);
      cuda::launch_peer_sum(launch, stream());
      must(cudaGetLastError(), "the kernel that sums over ranks");
    }
  }

  [[nodiscard]] bool should_sum(const Tensor& row) const override {
    return row.is_cuda() && is_summable(row) && (is_recording() || suits(row));
  }

 private:
  static bool is_summable(const Tensor& row) { return row.scalar_type() == at::kBFloat16 || row.scalar_type() == at::kFloat; }

  // Of larger rows every rank reads too much of the others'.
  [[nodiscard]] bool suits(const Tensor& row) const { return !share_a_gpu_ && static_cast<int64_t>(row.nbytes()) <= Room::kHalfBytes; }

  [[nodiscard]] bool is_recording() const {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    must(cudaStreamIsCapturing(stream(), &status), "cudaStreamIsCapturing");
    return status != cudaStreamCaptureStatusNone;
  }

  [[nodiscard]] cudaStream_t stream() const { return static_cast<cudaStream_t>(current_cuda_stream(device_.index())); }

  const int rank_, size_;
  const at::Device device_;
  const bool share_a_gpu_;
  const PeerMemory memory_;
};

}  // namespace

std::shared_ptr<PeerSums> make_peer_sums(const Group& group, at::Device device) {
  ensure(device.is_cuda(), "sums over GPU memory on ", name_of(device));
  const std::vector<RankPlace> places = gather_places(group, cuda_bus_id(device.index()));
  if (!on_one_machine(places) || group.size() > Room::kMaxRanks) return nullptr;
  try {
    return std::make_shared<MappedSums>(group, device, some_share_gpus(places));
  } catch (const UsageError& error) {  // on all ranks
    log_debug("sums over ranks go the longer way: ", error.what());
    return nullptr;
  }
}

}  // namespace kedge
