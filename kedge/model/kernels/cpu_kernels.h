#pragma once
// The CPU's side of model/ops: loops over rows. Written so that compilers vectorise them, with sums in a fixed number of lanes: a row gives
// the same bits at any place.
#include "kedge/model/kernels/op_kernels.h"

namespace kedge::cpu {

extern const OpKernels kernels;

void add_rows(const Tensor& table, const Tensor& ids, const Tensor& rows);
// Adds the sum of all rows to the fp32 `sums` [width]: blocks of 256 rows in order.
void add_row_sums(const Tensor& sums, const Tensor& rows);
// In place of the logits.
void logit_gradient_(const Tensor& logits, const Tensor& targets, const LogitStats& stats, const Tensor& dlogprob, const Tensor& dentropy);

}  // namespace kedge::cpu
