#pragma once
// The GPU's side of sampling: one kernel for all rows of a step. Equal numbers at the edge of top-p all stay; otherwise the rules are
// those of sampling.h, with sums in single precision.
#include "kedge/engine/token_sampler.h"

namespace kedge::cuda {

// fp32 logits [rows, vocab]. `host` and `device` are reused buffers.
[[nodiscard]] std::vector<std::optional<Drawn>> draw_tokens(const Tensor& logits, std::span<const Draw> draws, Tensor& host,
                                                            Tensor& device);

}  // namespace kedge::cuda
