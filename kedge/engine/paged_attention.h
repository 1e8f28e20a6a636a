#pragma once
// Attention of a step's tokens over keys and values in blocks of memory: rotates queries and keys to their positions, stores keys
// and values, attends. For CPU and CUDA.
#include <cstdint>
#include <span>
#include <vector>

#include "kedge/core/tensor.h"
#include "kedge/engine/cpu_paged_attention.h"
#include "kedge/model/decoder_layer.h"
#include "kedge/model/kernels/packed_batch.h"

namespace kedge {

using cpu::kPagedBlock;
using cpu::PagedQuery;

// Keys and values of one layer, in the layout of the device (kv_memory.h).
struct LayerMemory {
  Tensor keys, values;
};

// A step's tokens. The first `num_paged` of them each attend to the cache; the others are rows that start with their sequence's first
// token and attend only to themselves, which is faster.
struct PagedTokens {
  int64_t num_paged = 0;
  PackedBatch fresh;                // the rows of the others
  Rotation rotation;                // of every token on the CPU, a table over positions on CUDA; empty if positions are learned
  std::vector<PagedQuery> queries;  // every token, on the CPU
  Tensor positions, slots;          // int32 [tokens], on CUDA: a token's position in its sequence, and in the cache
  Tensor tables;                    // int32 [num_paged, width], on CUDA: the blocks of each token's sequence
  bool decodes = false;             // one token of each sequence, and all of them paged: none attends to another's of this step
  int64_t num_splits = 1;           // into how many parts a query's keys are divided, on CUDA
};

// raw_qkv [tokens, (heads + 2 kv_heads) * head_dim], as the linear layer gave it; may be overwritten. [tokens, heads * head_dim] comes out.
[[nodiscard]] Tensor paged_attention(const Tensor& raw_qkv, const LayerView& layer, const PagedTokens& tokens, const LayerMemory& memory);

}  // namespace kedge
