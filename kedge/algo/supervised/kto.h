#pragma once
// Kahneman-Tversky optimisation: the network learns from single responses that are marked good or bad, measured against the policy it
// started from and against how far it has moved from that on the whole.
#include <memory>
#include <span>

#include "kedge/algo/supervised/preference_config.h"
#include "kedge/algo/supervised/supervised.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

// Settings that contradict each other are a UsageError.
void check_kto_config(const KtoModelConfig& config);

// Opens and reads the data, before there are weights: `model` must hold one by the first pass. It and `tokenizer` must outlive the task;
// `folder` is the model's, for its chat template.
[[nodiscard]] SupervisedTask make_kto_task(const KtoModelConfig& config, const std::unique_ptr<Model>& model, const Tokenizer& tokenizer,
                                           const Path& folder);

}  // namespace kedge
