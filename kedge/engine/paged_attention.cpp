#include "kedge/engine/paged_attention.h"

#include "kedge/engine/cuda_decode.h"

namespace kedge {
Tensor paged_attention(const Tensor& raw_qkv, const LayerView& layer, const PagedTokens& tokens, const LayerMemory& memory) {
  const AttentionShape& shape = layer.shape;
  const int64_t num_tokens = raw_qkv.size(0), num_fresh = num_tokens - tokens.num_paged;
  const bool cuda = raw_qkv.is_cuda();
  // On CUDA one kernel normalizes, rotates and stores.
  const Tensor qkv = !cuda && layer.q_norm.weight.defined() ? norm_heads(layer, raw_qkv, nullptr) : raw_qkv;
  Tensor out = at::empty({num_tokens, shape.num_heads * shape.head_dim}, qkv.options());
  if (cuda && tokens.decodes && cuda::can_turn_and_attend(qkv, shape)) {
    cuda::turn_and_attend(qkv, layer, tokens, memory, out);
  } else if (cuda) {
    cuda::turn_and_store(qkv, layer, tokens, memory);
    if (tokens.num_paged > 0) cuda::paged_attention(qkv, shape, tokens, memory, out);
  } else {
    if (tokens.rotation.cos.defined()) rotate_(qkv, tokens.rotation, false);
    cpu::write_key_values(qkv, shape, tokens.queries, memory.keys, memory.values);
    if (tokens.num_paged > 0)
      cpu::paged_attention(qkv.narrow(0, 0, tokens.num_paged), shape,
                           std::span(tokens.queries).first(static_cast<size_t>(tokens.num_paged)), memory.keys, memory.values,
                           out.narrow(0, 0, tokens.num_paged));
  }
  if (num_fresh > 0)
    out.narrow(0, tokens.num_paged, num_fresh)
        .copy_(attention(qkv.narrow(0, tokens.num_paged, num_fresh), tokens.fresh, shape, AttentionUse::generation).out);
  return out;
}

}  // namespace kedge
