// Replaces peer_transport.cpp in a build without CUDA.
#include "kedge/core/no_cuda.h"
#include "kedge/dist/peer_transport.h"

namespace kedge {

std::shared_ptr<Transport> make_peer_transport(const Group&, at::Device, int64_t) { fail_without_cuda(); }

}  // namespace kedge
