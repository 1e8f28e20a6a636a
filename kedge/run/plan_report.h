#pragma once
// The plan of a run, as text and as JSON: memory, disk, time. The same for all kinds of runs.
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/dist/mesh.h"
#include "kedge/run/device_setup.h"
#include "kedge/run/disk_check.h"
#include "kedge/run/memory_check.h"
#include "kedge/run/step_time_estimate.h"
#include "kedge/train/wire_plan.h"

namespace kedge {

struct PlanOptions {
  int64_t beside = 0;                      // bytes that other processes, not started yet, will take on the same device
  bool wants_time = false;                 // measure how fast this machine is
  std::optional<PlannedRanks> ranks = {};  // other ranks than were started
};

struct PlanReport {
  std::string text = {};
  Json json = {};
  bool fits = true;
  int64_t needed = 0;  // bytes on its device
};

// The first line: what runs from where, as what, on what.
[[nodiscard]] std::string plan_heading(std::string_view name, const Path& folder, at::ScalarType dtype, const Mesh& mesh);
// Memory in addition to the training of a network, by name.
using NamedBytes = std::vector<std::pair<std::string, int64_t>>;
// Phase by phase, then its components, then whether it fits, and what would.
[[nodiscard]] std::string memory_text(const MemoryFit& verdict, const NamedBytes& others);
void add_verdict(Json& json, const MemoryFit& verdict);
void add_disk(PlanReport& report, const DiskPlan& disk);
// Bytes that a rank sends in a step while it computes: to the ranks that compute with it, and when weights move to generation's layout.
struct ComputeTraffic {
  int tensor_ranks = 1;
  int64_t tensor = 0, reshard = 0;
};
// What ranks send each other in a step; nothing for one rank. Returns the seconds that it takes at the planned speeds, 0 if none are
// planned.
double add_wire(PlanReport& report, const MemoryInput& pass, const ShardOptions& shards, const WireEvents& step,
                const ComputeTraffic& compute, const std::optional<PlannedRanks>& planned);
// Measures how fast this machine is. `what` states the conditions of the times; `wire_s` is what ranks take to send each other in a step.
void add_time(PlanReport& report, const StepWork& work, int64_t num_steps, std::string_view what, double wire_s = 0);

}  // namespace kedge
