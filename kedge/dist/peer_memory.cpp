#include "kedge/dist/peer_memory.h"

#include <cstring>
#include <exception>
#include <string>

#include <c10/core/DeviceGuard.h>

#include "kedge/core/cuda_error.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {
namespace {

// What is shared with other processes is whole pages of the driver's, so nothing else should be in them.
constexpr int64_t kPageBytes = int64_t{2} << 20;

// What this process sees of another rank's memory, or null and the reason.
std::byte* mapped(const std::string& bytes, int rank, std::string& reason) {
  cudaIpcMemHandle_t handle{};
  ensure(bytes.size() == sizeof handle, "a CUDA IPC handle of ", bytes.size(), " bytes");
  std::memcpy(&handle, bytes.data(), sizeof handle);
  void* data = nullptr;
  const cudaError_t status = cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess);
  if (status == cudaSuccess) return static_cast<std::byte*>(data);
  static_cast<void>(cudaGetLastError());  // or the next call would report it
  reason = str("a GPU cannot read the memory of rank ", rank, "'s: cudaIpcOpenMemHandle: ", cudaGetErrorString(status));
  return nullptr;
}

}  // namespace

PeerMemory::PeerMemory(const Group& group, at::Device device, int64_t bytes)
    : group_(group), device_(device), parts_(static_cast<size_t>(group.size())) {
  if (group.size() == 1) return;
  const c10::DeviceGuard guard(device_);
  const int64_t pages = (bytes + kPageBytes - 1) / kPageBytes;
  void* own = nullptr;
  must(cudaMalloc(&own, static_cast<size_t>(pages * kPageBytes)), "cudaMalloc");
  must(cudaMemset(own, 0, static_cast<size_t>(pages * kPageBytes)), "cudaMemset");
  must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // before others see it
  parts_[static_cast<size_t>(group.rank())] = static_cast<std::byte*>(own);
  cudaIpcMemHandle_t handle{};
  must(cudaIpcGetMemHandle(&handle, own), "cudaIpcGetMemHandle");
  const std::vector<std::string> handles = group.all_gather({reinterpret_cast<const char*>(&handle), sizeof handle});
  std::string reason;
  for (int other = 0; other < group.size(); ++other)
    if (other != group.rank()) parts_[static_cast<size_t>(other)] = mapped(handles[static_cast<size_t>(other)], other, reason);
  // Whoever failed, all ranks fail, so that none waits for the others.
  for (const std::string& found : group.all_gather(reason)) {
    if (found.empty()) continue;
    release();
    check(false, found);
  }
}

PeerMemory::~PeerMemory() {
  if (group_.size() == 1 || std::uncaught_exceptions() > 0) return;
  try {
    release();
  } catch (const Error& error) {
    log_error(error.what());
  }
}

void PeerMemory::release() const {
  const c10::DeviceGuard guard(device_);
  for (int other = 0; other < group_.size(); ++other)
    if (other != group_.rank() && (*this)[other] != nullptr) static_cast<void>(cudaIpcCloseMemHandle((*this)[other]));
  group_.barrier();
  static_cast<void>(cudaFree((*this)[group_.rank()]));
}

}  // namespace kedge
