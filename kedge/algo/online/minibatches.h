#pragma once
// How the rows of a step are divided into updates, ranks, micro-batches and passes, and the weight of a token in the loss of its update.
// Independent of tensors and losses.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kedge/config/config_schema.h"

namespace kedge {

struct BatchSizes {
  int64_t global_size = 1;         // rows of one update, over all ranks
  int64_t micro_size = 1;          // rows of one micro-batch
  int64_t tokens_per_pass = 4096;  // of prompts and answers; only memory and time depend on it
};

// Rows that are computed together, in this order.
struct Pass {
  std::vector<int64_t> rows = {};
  bool shares_prompts = false;  // neighbours with the same prompt compute it once
};

// The rows of one update.
struct Minibatch {
  std::vector<int64_t> rows = {};  // of all ranks, in order: every `micro_size` of them are one micro-batch
  std::vector<Pass> passes = {};   // this rank's
};

// Rows of the same group are in one pass, next to each other and in the order of the step. By row; empty: each row is one.
struct RowGroups {
  std::vector<int64_t> groups = {};
  std::vector<int64_t> shared = {};  // tokens that a group's rows begin with and that a pass computes once. Empty: none
  // A group that is larger than a pass is divided, and one that would keep a rank busy while others wait; otherwise it is a pass of its
  // own.
  bool may_divide = false;
};

// Rows in passes of at most this many tokens, at least one row. Passes ignore micro-batches, which only affect weights.
[[nodiscard]] std::vector<Pass> plan_passes(std::span<const int64_t> rows, std::span<const int64_t> lengths, int64_t tokens_per_pass,
                                            const RowGroups& groups = {});

// Row i of the step is row order[i]; lengths are the tokens of prompt and answer, by row. Ranks have about as many tokens of a minibatch.
// UsageError if the sizes do not divide.
[[nodiscard]] std::vector<Minibatch> plan_minibatches(std::span<const int64_t> order, std::span<const int64_t> lengths,
                                                      const BatchSizes& sizes, int rank, int num_ranks, const RowGroups& groups = {});

// How the tokens of an update are averaged.
enum class LossNorm {
  reference,  // the mean over a micro-batch's tokens, then over all micro-batches; one without tokens is a 0 among them
  tokens,     // the mean over all tokens of the update
  sequences,  // the mean over a row's tokens, then over all rows that have some
  sum,        // the sum over a row's tokens, then the mean over all rows that have some
  constant,   // the sum over all tokens, divided by the number of all rows times the maximum length of an answer
};
constexpr auto enum_names(LossNorm) {
  return std::array<EnumName<LossNorm>, 5>{{{"reference", LossNorm::reference},
                                            {"tokens", LossNorm::tokens},
                                            {"sequences", LossNorm::sequences},
                                            {"sum", LossNorm::sum},
                                            {"constant", LossNorm::constant}}};
}
// Descriptive names; those of verl's loss_agg_mode; NeMo-RL's token_level_loss; the averages of TRL's loss types.
constexpr auto other_names(LossNorm) {
  return std::array<EnumName<LossNorm>, 15>{{{"token_mean", LossNorm::tokens},
                                             {"sequence_mean", LossNorm::sequences},
                                             {"sequence_sum", LossNorm::sum},
                                             {"token-mean", LossNorm::tokens},
                                             {"seq-mean-token-mean", LossNorm::sequences},
                                             {"seq-mean-token-sum", LossNorm::sum},
                                             {"seq-mean-token-sum-norm", LossNorm::constant},
                                             {"true", LossNorm::tokens},
                                             {"false", LossNorm::sequences},
                                             {"True", LossNorm::tokens},
                                             {"False", LossNorm::sequences},
                                             {"grpo", LossNorm::sequences},
                                             {"dapo", LossNorm::tokens},
                                             {"bnpo", LossNorm::tokens},
                                             {"dr_grpo", LossNorm::constant}}};
}

// The weight of one token of each row, in the order of `minibatch.rows`: the loss is the sum of weight * term over the tokens of all ranks.
// `counts` has, by row, the answer tokens that count; 0 for a row that is not trained on, whose weight is 0. `max_length` is the longest
// that an answer may be, for LossNorm::constant.
[[nodiscard]] std::vector<double> token_weights(const Minibatch& minibatch, std::span<const int64_t> counts, int64_t micro_size,
                                                LossNorm norm, int64_t max_length = 0);

}  // namespace kedge
