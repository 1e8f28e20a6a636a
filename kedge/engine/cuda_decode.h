#pragma once
// The GPU's side of paged attention. In a build without CUDA every function throws an error that shows how to build with CUDA.
#include "kedge/engine/paged_attention.h"

namespace kedge::cuda {

// Normalizes (in families that do) and rotates queries and keys in place; stores keys and values at the tokens' slots.
void turn_and_store(const Tensor& qkv, const LayerView& layer, const PagedTokens& tokens, const LayerMemory& memory);
// The first num_paged tokens of qkv; writes as many rows of out.
void paged_attention(const Tensor& qkv, const AttentionShape& shape, const PagedTokens& tokens, const LayerMemory& memory,
                     const Tensor& out);

// Both in one kernel, with the same bits, for steps in which every token attends to the cache, and none to another's of the same step:
// those that decode. Leaves qkv as it is. Of some types and head sizes.
[[nodiscard]] bool can_turn_and_attend(const Tensor& qkv, const AttentionShape& shape);
void turn_and_attend(const Tensor& qkv, const LayerView& layer, const PagedTokens& tokens, const LayerMemory& memory, const Tensor& out);

}  // namespace kedge::cuda
