#pragma once
// The GPU's side of sampling: one kernel for all rows of a step. Equal numbers at the edge of top-p all stay; otherwise the rules are
// those of sampling.h, with sums in single precision.
#include "kedge/engine/token_sampler.h"

namespace kedge::cuda {

// fp32 logits [rows, vocab]. Starts the draws on the current stream and returns their tokens there, int32 [draws], which the next call
// overwrites; -1 where nothing can be sampled.
[[nodiscard]] Tensor start_draws(const Tensor& logits, std::span<const Draw> draws, StartedDraws& started, DrawBuffers& buffers);
// Waits for them, and fills started.drawn.
void read_draws(StartedDraws& started);

// ids[awaited[i][0]] = tokens[awaited[i][1]] for the pairs in `awaited`, or id 0 if that is -1. All int32.
void fill_awaited(const Tensor& tokens, const Tensor& awaited, const Tensor& ids);

}  // namespace kedge::cuda
