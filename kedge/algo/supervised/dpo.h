#pragma once
// Direct preference optimisation: the network learns to prefer the better of two responses, measured against the policy it started from.
#include <memory>
#include <span>

#include "kedge/algo/supervised/preference_config.h"
#include "kedge/algo/supervised/supervised.h"
#include "kedge/text/tokenizer/tokenizer.h"

namespace kedge {

// Settings that contradict each other are a UsageError.
void check_dpo_config(const DpoModelConfig& config);

// Opens and reads the data, before there are weights: `model` must hold one by the first pass. It and `tokenizer` must outlive the task;
// `folder` is the model's, for its chat template.
[[nodiscard]] SupervisedTask make_dpo_task(const DpoModelConfig& config, const std::unique_ptr<Model>& model, const Tokenizer& tokenizer,
                                           const Path& folder);

}  // namespace kedge
