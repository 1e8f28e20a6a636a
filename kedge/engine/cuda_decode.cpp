#include "kedge/engine/cuda_decode.h"

#include <optional>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "kedge/core/error.h"
#include "kedge/engine/cuda_decode_launch.h"

namespace kedge::cuda {
namespace {

bool is_bf16(const Tensor& tensor) { return tensor.scalar_type() == at::kBFloat16; }
const void* weight_data(const Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr() : nullptr; }
const float* angle_data(const Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr; }

HeadCounts counts_of(const AttentionShape& shape) {
  check(shape.head_dim <= 256, "generation on a GPU takes heads of at most 256 channels; this model's have ", shape.head_dim);
  return {static_cast<int>(shape.num_heads), static_cast<int>(shape.num_kv_heads), static_cast<int>(shape.head_dim)};
}

TurnLaunch turn_launch(const Tensor& qkv, const LayerView& layer, const PagedTokens& tokens, const LayerMemory& memory) {
  return {is_bf16(qkv),
          qkv.mutable_data_ptr(),
          tokens.positions.const_data_ptr<int32_t>(),
          tokens.slots.const_data_ptr<int32_t>(),
          angle_data(tokens.rotation.cos),
          angle_data(tokens.rotation.sin),
          static_cast<int>(tokens.rotation.dim / 2),
          weight_data(layer.q_norm.weight),
          weight_data(layer.k_norm.weight),
          static_cast<float>(layer.q_norm.eps),
          memory.keys.mutable_data_ptr(),
          memory.values.mutable_data_ptr(),
          qkv.size(0),
          counts_of(layer.shape)};
}

// With `turn`: of the same tokens, first.
void attend(const Tensor& qkv, const AttentionShape& shape, const PagedTokens& tokens, const LayerMemory& memory, const Tensor& out,
            const std::optional<TurnLaunch>& turn) {
  const c10::cuda::CUDAGuard guard(qkv.device());
  const HeadCounts counts = counts_of(shape);
  const int64_t num_splits = is_fast_paged_attention(is_bf16(qkv), counts) ? tokens.num_splits : 1;
  Tensor part, log_sum;
  if (num_splits > 1) {
    const auto options = qkv.options().dtype(at::kFloat);
    part = at::empty({tokens.num_paged, shape.num_heads, num_splits, shape.head_dim}, options);
    log_sum = at::empty({tokens.num_paged, shape.num_heads, num_splits}, options);
  }
  launch_paged_attention(
      {is_bf16(qkv), qkv.const_data_ptr(), tokens.positions.const_data_ptr<int32_t>(), tokens.tables.const_data_ptr<int32_t>(),
       static_cast<int>(tokens.tables.size(1)), memory.keys.const_data_ptr(), memory.values.const_data_ptr(), out.mutable_data_ptr(),
       tokens.num_paged, counts, static_cast<int>(shape.window), static_cast<float>(shape.scale()), static_cast<int>(num_splits),
       num_splits > 1 ? part.mutable_data_ptr<float>() : nullptr, num_splits > 1 ? log_sum.mutable_data_ptr<float>() : nullptr,
       turn.has_value(), turn.value_or(TurnLaunch{})},
      c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace

void turn_and_store(const Tensor& qkv, const LayerView& layer, const PagedTokens& tokens, const LayerMemory& memory) {
  const c10::cuda::CUDAGuard guard(qkv.device());
  launch_turn_and_store(turn_launch(qkv, layer, tokens, memory), c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void paged_attention(const Tensor& qkv, const AttentionShape& shape, const PagedTokens& tokens, const LayerMemory& memory,
                     const Tensor& out) {
  attend(qkv, shape, tokens, memory, out, std::nullopt);
}

bool can_turn_and_attend(const Tensor& qkv, const AttentionShape& shape) { return is_fast_paged_attention(is_bf16(qkv), counts_of(shape)); }

void turn_and_attend(const Tensor& qkv, const LayerView& layer, const PagedTokens& tokens, const LayerMemory& memory, const Tensor& out) {
  ensure(tokens.num_paged == qkv.size(0), "some tokens of a step do not attend to the cache");
  attend(qkv, layer.shape, tokens, memory, out, turn_launch(qkv, layer, tokens, memory));
}

}  // namespace kedge::cuda
