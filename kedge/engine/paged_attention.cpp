#include "kedge/engine/paged_attention.h"

#include "kedge/engine/cuda_decode.h"

namespace kedge {
namespace {

void norm_heads_(const Tensor& qkv, int64_t from, int64_t heads, int64_t dim, const NormWeights& weights) {
  const Tensor part = qkv.narrow(1, from, heads * dim);
  part.copy_(norm(part.reshape({-1, dim}).contiguous(), weights).out.view({-1, heads * dim}));
}

}  // namespace

Tensor paged_attention(const Tensor& qkv, const LayerView& layer, const PagedTokens& tokens, const LayerMemory& memory) {
  const AttentionShape& shape = layer.shape;
  const int64_t num_tokens = qkv.size(0), num_fresh = num_tokens - tokens.num_paged;
  Tensor out = at::empty({num_tokens, shape.num_heads * shape.head_dim}, qkv.options());
  if (qkv.is_cuda()) {
    cuda::turn_and_store(qkv, layer, tokens, memory);
    if (tokens.num_paged > 0) cuda::paged_attention(qkv, shape, tokens, memory, out);
  } else {
    if (layer.q_norm.weight.defined()) {
      norm_heads_(qkv, 0, shape.num_heads, shape.head_dim, layer.q_norm);
      norm_heads_(qkv, shape.num_heads * shape.head_dim, shape.num_kv_heads, shape.head_dim, layer.k_norm);
    }
    if (tokens.rotation.cos.defined()) rotate_(qkv, tokens.rotation, false);
    cpu::write_key_values(qkv, shape, tokens.queries, memory.keys, memory.values);
    if (tokens.num_paged > 0)
      cpu::paged_attention(qkv.narrow(0, 0, tokens.num_paged), shape,
                           std::span(tokens.queries).first(static_cast<size_t>(tokens.num_paged)), memory.keys, memory.values,
                           out.narrow(0, 0, tokens.num_paged));
  }
  if (num_fresh > 0)
    out.narrow(0, tokens.num_paged, num_fresh).copy_(attention(qkv.narrow(0, tokens.num_paged, num_fresh), tokens.fresh, shape).out);
  return out;
}

}  // namespace kedge
