#pragma once
// Causal attention within each row of a packed batch, with its backward. Queries, keys and values of all heads are contiguous:
// [tokens, (heads + 2 kv_heads) * head_dim].
#include "kedge/core/tensor.h"
#include "kedge/model/kernels/packed_batch.h"

namespace kedge {

struct AttentionShape {
  int64_t num_heads = 0, num_kv_heads = 0, head_dim = 0;
  int64_t window = 0;  // keys a query sees, itself included; 0 = all before it

  [[nodiscard]] double scale() const;
};

struct Attended {
  Tensor out;      // [tokens, heads * head_dim]
  Tensor log_sum;  // what the backward needs of the softmax
  Tensor random;   // the random state that flash attention's backward needs, although there is no dropout
};

// Does flash attention support bf16 heads of this many channels, on every GPU?
[[nodiscard]] bool flash_takes(int64_t head_dim);

// Generation has too many shapes of batches for kernels that are prepared for each.
enum class AttentionUse { training, generation };
[[nodiscard]] Attended attention(const Tensor& qkv, const PackedBatch& batch, const AttentionShape& shape,
                                 AttentionUse use = AttentionUse::training);
// The gradient of qkv.
[[nodiscard]] Tensor attention_backward(const Tensor& dout, const Tensor& qkv, const Attended& saved, const PackedBatch& batch,
                                        const AttentionShape& shape);

}  // namespace kedge
