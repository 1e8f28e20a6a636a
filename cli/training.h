#pragma once
// The commands that train: kedge sft, rm, dpo, kto, ppo, reinforce, grpo, rloo and rs, each a job of the library.
#include <optional>
#include <string>
#include <string_view>

#include "kedge/core/files.h"
#include "kedge/run/plan_report.h"

#include "cli/arguments.h"

namespace kedge::cli {

// --fork CKPT, anywhere among the arguments.
[[nodiscard]] std::optional<Path> take_fork(Arguments& arguments);

// What the run that these arguments of command `name` would start takes.
[[nodiscard]] PlanReport plan_training(std::string_view name, const Arguments& arguments, const PlanOptions& options);

}  // namespace kedge::cli
