#pragma once
// The kernels that model/ops needs from every device: fp32 inside, float or bf16 in memory. Tensors are contiguous; shapes were checked by
// the caller.
#include "kedge/model/kernels/ops.h"

namespace kedge {

struct OpKernels {
  // `saved.rstd` undefined: the statistics are computed, else used.
  void (*norm)(const Tensor& x, const NormWeights& weights, Normed& saved);
  void (*norm_backward)(const Tensor& dout, const Tensor& x, const Normed& saved, const NormWeights& weights, const Tensor& beside,
                        const Tensor& dx);
  void (*silu_gate)(const Tensor& gate_up, const Tensor& out);
  void (*silu_gate_backward)(const Tensor& dout, const Tensor& gate_up, const Tensor& dgate_up, const Tensor& out);
  void (*rotate)(const Tensor& x, const Rotation& rotation, bool backwards);
  void (*logit_stats)(const Tensor& logits, const Tensor& targets, LogitStats& stats);
};

}  // namespace kedge
