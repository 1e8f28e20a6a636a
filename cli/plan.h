#pragma once
// What kedge plan says of a run before it is started, and what its plans for all kinds of runs have in common.
#include <string>
#include <string_view>

#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/dist/mesh.h"

#include "cli/arguments.h"
#include "cli/memory_check.h"

namespace kedge::cli {

struct PlanReport {
  std::string text;
  Json json;
  bool fits = true;
};

// One for every row of the table in plan.cpp: the run that these arguments of its command would start.
[[nodiscard]] PlanReport plan_sft(const Arguments& arguments);
[[nodiscard]] PlanReport plan_rm(const Arguments& arguments);
[[nodiscard]] PlanReport plan_ppo(const Arguments& arguments);
[[nodiscard]] PlanReport plan_reinforce(const Arguments& arguments);
[[nodiscard]] PlanReport plan_rs(const Arguments& arguments);

// The first line: what runs from where, as what, on what.
[[nodiscard]] std::string plan_heading(std::string_view name, const Path& folder, at::ScalarType dtype, const Mesh& mesh);
// The last lines: does it fit, and what would.
[[nodiscard]] std::string verdict_text(const MemoryVerdict& verdict);
void add_verdict(Json& json, const MemoryVerdict& verdict);

}  // namespace kedge::cli
