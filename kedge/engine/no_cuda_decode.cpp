#include "kedge/core/error.h"
#include "kedge/engine/cuda_decode.h"
#include "kedge/engine/cuda_sampling.h"

namespace kedge::cuda {
namespace {

[[noreturn]] void fail() { throw Error("this kedge was built without CUDA; build it with: scripts/build cuda"); }

}  // namespace

void turn_and_store(const Tensor&, const LayerView&, const PagedTokens&, const LayerMemory&) { fail(); }
void paged_attention(const Tensor&, const AttentionShape&, const PagedTokens&, const LayerMemory&, const Tensor&) { fail(); }
std::vector<std::optional<Drawn>> draw_tokens(const Tensor&, std::span<const Draw>, Tensor&, Tensor&) { fail(); }

}  // namespace kedge::cuda
