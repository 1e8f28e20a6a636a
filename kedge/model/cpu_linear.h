#pragma once
// Matrix products of the CPU whose rows do not know each other: every sum runs along `in` in one fixed order, so a row has the same bits
// alone, in a decoding step and in a training batch. Weights are read as they are stored, without a packed copy.
#include "kedge/core/tensor.h"

namespace kedge::cpu {

// Whether `linear` below is the one to take here. On aarch64 it is at any number of rows: the library's products take up to 20 times as
// long for few rows, about a tenth less for a thousand, and there a row's bits depend on the others. Never on x86_64.
[[nodiscard]] bool linear_suits(const Tensor& x, const Tensor& weight);

// What is added to the sums in fp32, before the one rounding. Either may be undefined.
struct LinearTerms {
  Tensor bias;    // [out]
  Tensor beside;  // [rows, out]; may be the output itself
};

// out = x weight^T + terms. x [rows, in], weight [out, in], out [rows, out]: contiguous, all fp32 or all bf16.
void linear(const Tensor& x, const Tensor& weight, const Tensor& out, const LinearTerms& terms = {});

}  // namespace kedge::cpu
