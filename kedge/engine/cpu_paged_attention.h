#pragma once
// Attention of decoding on the CPU, over a KV cache in blocks. It keeps the order of every sum of the training attention
// (model/cpu_attention), so a token gets the same bits from both. Independent of sequences.
#include <span>

#include "kedge/engine/block_pool.h"
#include "kedge/model/kernels/attention.h"

namespace kedge::cpu {

constexpr int64_t kPagedBlock = 64;  // tokens in a block: the keys over which the training attention folds its softmax

// One token's query and what it sees: keys [0, position] of its sequence (or the window's last ones), in these blocks.
struct PagedQuery {
  const BlockId* blocks = nullptr;
  int64_t position = 0;
};

// The memory of one layer, of qkv's type: keys [blocks, kv_heads, head_dim, kPagedBlock], channels by keys so that a query meets many keys
// at once, and values [blocks, kv_heads, kPagedBlock, head_dim]. Content after a query's position never affects a result.

// Copies keys and values of the tokens of qkv [tokens, (heads + 2 kv_heads) * head_dim] into the memory, token i to queries[i].
void write_key_values(const Tensor& qkv, const AttentionShape& shape, std::span<const PagedQuery> queries, const Tensor& keys,
                      const Tensor& values);
// Every token's query over the memory; writes out [tokens, heads * head_dim].
void paged_attention(const Tensor& qkv, const AttentionShape& shape, std::span<const PagedQuery> queries, const Tensor& keys,
                     const Tensor& values, const Tensor& out);

}  // namespace kedge::cpu
