#pragma once
// What kedge plan says of a run before it is started, and what its plans for all kinds of runs have in common.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/dist/mesh.h"

#include "cli/arguments.h"
#include "cli/disk_check.h"
#include "cli/memory_check.h"
#include "cli/pace.h"

namespace kedge::cli {

struct PlanArguments {
  Arguments rest = {};      // those of the command
  int64_t beside = 0;       // bytes that others will take where it computes, who are not started yet
  bool wants_time = false;  // try how fast this machine is
};

struct PlanReport {
  std::string text = {};
  Json json = {};
  bool fits = true;
  int64_t needed = 0;  // bytes, where it computes
};

// One for every row of the table in plan.cpp: the run that these arguments of its command would start.
[[nodiscard]] PlanReport plan_sft(const PlanArguments& arguments);
[[nodiscard]] PlanReport plan_rm(const PlanArguments& arguments);
[[nodiscard]] PlanReport plan_ppo(const PlanArguments& arguments);
[[nodiscard]] PlanReport plan_reinforce(const PlanArguments& arguments);
[[nodiscard]] PlanReport plan_rs(const PlanArguments& arguments);
[[nodiscard]] PlanReport plan_serve_reward(const PlanArguments& arguments);
[[nodiscard]] PlanReport plan_serve_critic(const PlanArguments& arguments);

// The first line: what runs from where, as what, on what.
[[nodiscard]] std::string plan_heading(std::string_view name, const Path& folder, at::ScalarType dtype, const Mesh& mesh);
// What there is beside the training of a network, each with its name.
using NamedBytes = std::vector<std::pair<std::string, int64_t>>;
// Phase by phase, then what it is made of, then: does it fit, and what would.
[[nodiscard]] std::string memory_text(const MemoryVerdict& verdict, const NamedBytes& others);
void add_verdict(Json& json, const MemoryVerdict& verdict);
void add_disk(PlanReport& report, const DiskPlan& disk);
// Tries how fast this machine is. `what` says under which condition the times hold.
void add_time(PlanReport& report, const StepWork& work, int64_t num_steps, std::string_view what);

}  // namespace kedge::cli
