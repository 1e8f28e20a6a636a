#pragma once
// Direct preference optimisation: the network learns to prefer the better of two responses, measured against the policy it started from.
#include <memory>
#include <span>

#include "kedge/algo/supervised/preference_config.h"
#include "kedge/algo/supervised/supervised.h"

namespace kedge {

// Settings that contradict each other are a UsageError.
void check_dpo_config(const DpoModelConfig& config);

// Opens and reads the data, before there are weights.
[[nodiscard]] SupervisedTask make_dpo_task(const DpoModelConfig& config, const TaskModel& model);

}  // namespace kedge
