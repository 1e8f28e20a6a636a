#pragma once
// Attention on the CPU. Every query's sums run over channels and keys in one fixed order, whatever its neighbours: a row's numbers
// depend on that row alone, and a decoding step that keeps the order gets the same bits.
#include "kedge/model/kernels/attention.h"

namespace kedge::cpu {

[[nodiscard]] Attended attention(const Tensor& qkv, const PackedBatch& batch, const AttentionShape& shape);
[[nodiscard]] Tensor attention_backward(const Tensor& dout, const Tensor& qkv, const Attended& saved, const PackedBatch& batch,
                                        const AttentionShape& shape);

}  // namespace kedge::cpu
