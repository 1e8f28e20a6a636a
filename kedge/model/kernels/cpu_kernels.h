#pragma once
// The CPU's side of model/ops: loops over rows, fp32 inside, float or bf16 in memory. Written so that compilers vectorise them, with
// sums in a fixed number of lanes: a row gives the same bits at any place. Tensors are contiguous; shapes were checked by the caller.
#include "kedge/model/kernels/ops.h"

namespace kedge::cpu {

// `saved.rstd` undefined: the statistics are computed, else used.
void norm(const Tensor& x, const NormWeights& weights, Normed& saved);
void norm_backward(const Tensor& dout, const Tensor& x, const Normed& saved, const NormWeights& weights, const Tensor& beside,
                   const Tensor& dx);
void silu_gate(const Tensor& gate_up, const Tensor& out);
void silu_gate_backward(const Tensor& dout, const Tensor& gate_up, const Tensor& dgate_up, const Tensor& out);
void rotate(const Tensor& x, const Rotation& rotation, bool backwards);
void add_rows(const Tensor& table, const Tensor& ids, const Tensor& rows);
// Adds the sum of all rows to the fp32 `sums` [width]: blocks of 256 rows in order.
void add_row_sums(const Tensor& sums, const Tensor& rows);
void logit_stats(const Tensor& logits, const Tensor& targets, LogitStats& stats);
// In place of the logits.
void logit_gradient_(const Tensor& logits, const Tensor& targets, const LogitStats& stats, const Tensor& dlogprob, const Tensor& dentropy);

}  // namespace kedge::cpu
