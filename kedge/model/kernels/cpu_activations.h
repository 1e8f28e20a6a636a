#pragma once
// Activation functions on the CPU, element by element. An output's bits depend only on its input: a library's may depend on where the
// share of a thread ends. Contiguous tensors of one type, fp32 or bf16; fp32 inside.
#include "kedge/core/tensor.h"
#include "kedge/model/spec/model_config.h"

namespace kedge::cpu {

void activate(const Tensor& x, Activation activation, const Tensor& out);
// dx = dout * the derivative at x.
void activate_backward(const Tensor& dout, const Tensor& x, Activation activation, const Tensor& dx);

}  // namespace kedge::cpu
