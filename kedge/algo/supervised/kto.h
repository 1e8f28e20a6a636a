#pragma once
// Kahneman-Tversky optimisation: the network learns from single responses that are marked good or bad, measured against the policy it
// started from and against how far it has moved from that on the whole.
#include <memory>
#include <span>

#include "kedge/algo/supervised/preference_config.h"
#include "kedge/algo/supervised/supervised.h"

namespace kedge {

// Settings that contradict each other are a UsageError.
void check_kto_config(const KtoModelConfig& config);

// Opens and reads the data, before there are weights.
[[nodiscard]] SupervisedTask make_kto_task(const KtoModelConfig& config, const TaskModel& model);

}  // namespace kedge
