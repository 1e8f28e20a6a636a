#include "kedge/core/no_cuda.h"
#include "kedge/engine/cuda_decode.h"
#include "kedge/engine/cuda_sampling.h"

namespace kedge::cuda {
void turn_and_store(const Tensor&, const LayerView&, const PagedTokens&, const LayerMemory&) { fail_without_cuda(); }
void paged_attention(const Tensor&, const AttentionShape&, const PagedTokens&, const LayerMemory&, const Tensor&) { fail_without_cuda(); }
std::vector<std::optional<Drawn>> draw_tokens(const Tensor&, std::span<const Draw>, Tensor&, Tensor&) { fail_without_cuda(); }

}  // namespace kedge::cuda
