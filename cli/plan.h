#pragma once
// What kedge plan can plan besides training (cli/training.h).
#include "kedge/run/plan_report.h"

#include "cli/arguments.h"

namespace kedge::cli {

// The server that these arguments of its command would start.
[[nodiscard]] PlanReport plan_serve_reward(const Arguments& arguments, const PlanOptions& options);
[[nodiscard]] PlanReport plan_serve_critic(const Arguments& arguments, const PlanOptions& options);

}  // namespace kedge::cli
