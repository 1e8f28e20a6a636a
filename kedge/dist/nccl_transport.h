#pragma once
// GPU tensors between ranks over NCCL: NVLink, PCIe, InfiniBand or sockets, whatever connects the GPUs.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kedge/dist/group.h"
#include "kedge/dist/rank_places.h"
#include "kedge/dist/transport.h"

namespace kedge {

// Made and destroyed by all ranks of the group, which are used to meet and not kept. Tensors are on `device`. Calls are queued and may be
// recorded in CUDA graphs; a call of the same sizes must have been made before, and the graphs must be destroyed before the transport,
// which waits for them. fast_reduce_scatter sums in NCCL's order, bf16 and fp16 with a rounding at each addition.
//
// Sets environment variables for NCCL (nccl_settings), which reads them once: if ranks share GPUs, the first transport of a process must be
// one that connects all of those. Destroyed while an exception is on its way, or after an error, it does not wait for
// the other ranks. UsageError where NCCL is not installed.
[[nodiscard]] std::shared_ptr<Transport> make_nccl_transport(const Group& group, at::Device device);

struct NcclSetting {
  std::string name, value;
};

// What a rank's environment must contain before NCCL starts. What the user has set is left alone. NVLS is switched off, because its sums
// differ from call to call. NCCL refuses two ranks on one GPU unless they claim to be different machines: ranks that share one do so, and
// what they send goes through sockets, of the machine itself if all ranks are on one.
[[nodiscard]] std::vector<NcclSetting> nccl_settings(std::span<const RankPlace> places, int rank);

}  // namespace kedge
