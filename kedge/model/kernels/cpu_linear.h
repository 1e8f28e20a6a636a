#pragma once
// Matrix products of the CPU with independent rows: every sum runs along the inner dimension in one fixed order, so a row has
// the same bits alone, in a decoding step and in a training batch. Weights are read as they are stored, without a packed copy.
#include "kedge/core/tensor.h"

namespace kedge::cpu {

// Whether `linear` below can read the tensors. If so, prefer it, for bf16 too: the library splits long sums by the number of rows,
// so that a row's bits depend on the others.
[[nodiscard]] bool linear_suits(const Tensor& x, const Tensor& weight);

// What is added to the sums in fp32, before the one rounding. Either may be undefined.
struct LinearTerms {
  Tensor bias;    // [out]
  Tensor beside;  // [rows, out]; may be the output itself
};

// out = x weight^T + terms. x [rows, in], weight [out, in], out [rows, out]: contiguous, all fp32 or all bf16.
void linear(const Tensor& x, const Tensor& weight, const Tensor& out, const LinearTerms& terms = {});

// The products of the backward, contiguous fp32: out = a b, + beside if defined (may be out itself). a [rows, inner],
// b [inner, columns].
void multiply(const Tensor& a, const Tensor& b, const Tensor& out, const Tensor& beside = {});
// gradient += dy^T x. dy [rows, out], x [rows, in], gradient [out, in]. Chains of kGradientRows rows are added in order.
void add_weight_gradient(const Tensor& gradient, const Tensor& dy, const Tensor& x);

}  // namespace kedge::cpu
