#include "kedge/model/kernels/cudnn_attention.h"

// For builds without CUDA, or without the headers of cuDNN and of its frontend (scripts/setup --cuda fetches the latter).
namespace kedge::cuda {

std::string describe_cudnn_attention(int /*device*/) {
  return "flash attention: kedge was built without cuDNN's frontend (scripts/setup --cuda, then build again)";
}

bool is_cudnn_suited(const Tensor& /*qkv*/, const AttentionShape& /*shape*/) { return false; }

std::optional<Attended> cudnn_attention(const HeadTensors& /*in*/, const KernelRows& /*rows*/, const AttentionShape& /*shape*/) {
  return std::nullopt;
}

std::optional<HeadTensors> cudnn_attention_backward(const Tensor& /*dout*/, const HeadTensors& /*in*/, const Attended& /*saved*/,
                                                    const KernelRows& /*rows*/, const AttentionShape& /*shape*/) {
  return std::nullopt;
}

}  // namespace kedge::cuda
