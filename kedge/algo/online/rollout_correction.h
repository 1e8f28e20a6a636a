#pragma once
// Weights for what a step learns from tokens whose probabilities in generation and in training differ. Plain numbers on the host.
#include <span>
#include <vector>

#include "kedge/algo/online/policy_loss_config.h"
#include "kedge/metrics/metrics.h"
#include "kedge/rollout/rollout_row.h"

namespace kedge {

// Of the tokens of one response, by their log-probs in training and in generation.
[[nodiscard]] std::vector<float> correction_weights(std::span<const float> trained, std::span<const float> generated,
                                                    const RolloutCorrectionConfig& config);

// UsageError for a range that is none; `section` opens it.
void check_correction(const RolloutCorrectionConfig& config, const std::string& section);

// Fills `correction` of every row that has both log-probs. Returns rollout_correction_mean, _max and _clipped: of the ratios over all
// tokens, and the share of tokens whose weight is not their ratio. Nothing for `none`.
[[nodiscard]] Metrics add_correction(RolloutRows& rows, const RolloutCorrectionConfig& config);

}  // namespace kedge
