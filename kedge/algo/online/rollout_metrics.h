#pragma once
// Metrics of the answers of a step or a validation, and one answer as text. Names have no prefix: callers put
// train_rollouts/ or val_rollouts/ before them. All sums are in double and in the order of the rows, so that every rank gets the same bits.
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kedge/metrics/metrics.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge {

// Lengths, ends and rewards; if training's own passes computed the log-probs, also the entropy and how far the engine's
// log-probs are from them. A mean over no rows is left out: `rewards` if no row has a reward.
[[nodiscard]] Metrics answer_metrics(std::span<const RolloutRow> rows);

// How far the policy is from the reference, and the rewards less the penalty for it.
[[nodiscard]] Metrics kl_metrics(std::span<const RolloutRow> rows);

// Rejection sampling has its own names. Of all answers, not only of the chosen ones.
[[nodiscard]] Metrics rs_metrics(std::span<const RolloutRow> rows);

// The first answer of the batch.
[[nodiscard]] SampleTable first_sample_table(std::string name, std::span<const RolloutRow> rows);

// Tokens that end an answer, and how they are spelt.
using EndTokens = std::vector<std::pair<TokenId, std::string>>;
// If less than a tenth of the answers ended by themselves: what would have ended them, and the last text of some of them. `remedy` follows
// the first sentence.
[[nodiscard]] std::optional<std::string> ending_hint(std::span<const RolloutRow> rows, const EndTokens& ends, std::string_view remedy = "");

}  // namespace kedge
