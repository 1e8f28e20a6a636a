// Replaces peer_memory.cpp in a build without CUDA.
#include "kedge/core/no_cuda.h"
#include "kedge/dist/peer_memory.h"

namespace kedge {

PeerMemory::PeerMemory(const Group& group, at::Device device, int64_t) : group_(group), device_(device) { fail_without_cuda(); }
PeerMemory::~PeerMemory() = default;

}  // namespace kedge
