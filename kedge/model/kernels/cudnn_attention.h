#pragma once
// Attention of training passes by cuDNN, on GPUs from Hopper on: nearly twice as fast there as flash attention. It prepares a plan for each
// shape of a batch, so shapes are rounded up and plans kept. Without cuDNN, or where it does not support a batch, there is no result.
#include <optional>
#include <string>

#include "kedge/model/kernels/shared_attention.h"

namespace kedge::cuda {

// For `kedge doctor`: the library's version, or why training on this GPU goes without it.
[[nodiscard]] std::string describe_cudnn_attention(int device);

[[nodiscard]] bool is_cudnn_suited(const Tensor& qkv, const AttentionShape& shape);

// As a RowKernel's; `shape` has no window.
[[nodiscard]] std::optional<Attended> cudnn_attention(const HeadTensors& in, const KernelRows& rows, const AttentionShape& shape);
[[nodiscard]] std::optional<HeadTensors> cudnn_attention_backward(const Tensor& dout, const HeadTensors& in, const Attended& saved,
                                                                  const KernelRows& rows, const AttentionShape& shape);

}  // namespace kedge::cuda
