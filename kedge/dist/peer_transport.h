#pragma once
// GPU tensors between the ranks of one machine, which read each other's GPU memory (CUDA IPC). The ranks may share a GPU; between GPUs
// the bytes take NVLink or PCIe. A build without CUDA has a stub.
#include <cstdint>
#include <memory>

#include "kedge/dist/group.h"
#include "kedge/dist/transport.h"

namespace kedge {

inline constexpr int64_t kPeerStagingBytes = int64_t{64} << 20;

// Made and destroyed by all ranks of the group, which is kept: the ranks meet in it several times a call. Tensors are on `device`. A call
// waits until its results are there, so it cannot be recorded in a CUDA graph. Each rank takes `staging_bytes` of its GPU, through which
// parts of any size pass piece by piece. UsageError if the ranks are on several machines or a GPU cannot read another's memory.
[[nodiscard]] std::shared_ptr<Transport> make_peer_transport(const Group& group, at::Device device,
                                                             int64_t staging_bytes = kPeerStagingBytes);

}  // namespace kedge
