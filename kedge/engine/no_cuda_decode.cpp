#include "kedge/core/no_cuda.h"
#include "kedge/engine/cuda_decode.h"
#include "kedge/engine/cuda_sampling.h"

namespace kedge::cuda {
void turn_and_store(const Tensor&, const LayerView&, const PagedTokens&, const LayerMemory&) { fail_without_cuda(); }
void paged_attention(const Tensor&, const AttentionShape&, const PagedTokens&, const LayerMemory&, const Tensor&) { fail_without_cuda(); }
bool can_turn_and_attend(const Tensor&, const AttentionShape&) { fail_without_cuda(); }
void turn_and_attend(const Tensor&, const LayerView&, const PagedTokens&, const LayerMemory&, const Tensor&) { fail_without_cuda(); }
Tensor start_draws(const Tensor&, std::span<const Draw>, StartedDraws&, DrawBuffers&) { fail_without_cuda(); }
void read_draws(StartedDraws&) { fail_without_cuda(); }
void fill_awaited(const Tensor&, const Tensor&, const Tensor&) { fail_without_cuda(); }

}  // namespace kedge::cuda
