#include "kedge/run/plan_report.h"

#include <algorithm>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/machine.h"
#include "kedge/metrics/progress.h"
#include "kedge/model/adapters.h"
#include "kedge/text/unicode/text_layout.h"

namespace kedge {
std::string plan_heading(std::string_view name, const Path& folder, at::ScalarType dtype, const Mesh& mesh) {
  return str("kedge ", name, " from ", folder.string(), ", ", name_of(dtype), " on ", name_of(mesh.device), ", ", mesh.world.size(),
             mesh.world.size() == 1 ? " rank\n" : " ranks\n");
}

std::string memory_text(const MemoryFit& verdict, const NamedBytes& others) {
  const bool has_host = verdict.host_needed > 0;
  std::string out = str("\nMemory by phase, at its worst moment", has_host ? "   on the GPU   in host memory" : "", "\n");
  const std::string worst = verdict.worst().name;
  for (const PhaseBytes& phase : verdict.phases)
    out += str("  ", pad_right(phase.name, has_host ? 36 : 20), pad_left(format_bytes(phase.device), 10),
               has_host ? pad_left(format_bytes(phase.host), 17) : "", phase.name == worst ? "  most" : "", "\n");
  out += str("\nMemory of an update\n", verdict.plan.table());
  NamedBytes beside = others;
  if (verdict.cache > 0) beside.insert(beside.begin(), {"keys and values", verdict.cache});
  if (verdict.reference_bytes > 0) beside.insert(beside.begin(), {"reference policy", verdict.reference_bytes});
  for (const auto& [name, bytes] : beside)
    if (bytes > 0) out += str("  ", pad_right(name, 20), pad_left(format_bytes(bytes), 10), "  in addition\n");
  out +=
      str("\n", verdict.fits ? "fits: " : "does not fit: ", format_bytes(verdict.needed), " needed, ", format_bytes(verdict.free), " free");
  if (has_host) out += str("; host memory ", format_bytes(verdict.host_needed));
  if (has_host && verdict.host_free == kUnknownBytes) out += " per rank";
  if (has_host && verdict.host_free != kUnknownBytes) out += str(", ", format_bytes(verdict.host_free), " free");
  out += "\n";
  if (verdict.blocks) out += "training will wait while a checkpoint is written: there is no memory for a copy of its state\n";
  for (const std::string& remedy : verdict.remedies) out += "  would fit: " + remedy + "\n";
  return out;
}

void add_verdict(Json& json, const MemoryFit& verdict) {
  json.set("memory", verdict.plan.json());
  Json phases{Json::Object{}}, host{Json::Object{}};
  for (const PhaseBytes& phase : verdict.phases) {
    phases.append(phase.name, Json(phase.device));
    host.append(phase.name, Json(phase.host));
  }
  json.set("phases", std::move(phases));
  json.set("host_phases", std::move(host));
  json.set("cache_bytes", verdict.cache);
  json.set("reference_bytes", verdict.reference_bytes);
  json.set("needed_bytes", verdict.needed);
  json.set("free_bytes", verdict.free);
  json.set("host_needed_bytes", verdict.host_needed);
  if (verdict.host_free != kUnknownBytes) json.set("host_free_bytes", verdict.host_free);
  json.set("fits", verdict.fits);
  json.set("blocks", verdict.blocks);
  Json::Array remedies;
  for (const std::string& remedy : verdict.remedies) remedies.emplace_back(remedy);
  json.set("would_fit", std::move(remedies));
}

void add_disk(PlanReport& report, const DiskPlan& disk) {
  std::string parts;
  const auto add = [&](const std::string& text) { parts += (parts.empty() ? "" : ", ") + text; };
  if (disk.num_kept > 0)
    add(str(disk.num_kept, disk.num_kept == 1 ? " checkpoint of " : " checkpoints of ", format_bytes(disk.checkpoint)));
  if (disk.model > 0) add("the model " + format_bytes(disk.model));
  if (disk.records > 0) add("answers up to " + format_bytes(disk.records));
  report.text +=
      str("\nDisk\n  ", parts.empty() ? "nothing but logs" : parts, "; ", format_bytes(disk.free), " free in ", disk.folder.string(), "\n");
  if (!disk.fits()) report.text += "  does not fit: there is no room for a second checkpoint next to the first\n";
  if (disk.fits() && disk.needed() > disk.free) report.text += "  the disk will be full before the end\n";
  report.json.set("disk", Json::Object{{"checkpoint_bytes", disk.checkpoint},
                                       {"checkpoints", disk.num_kept},
                                       {"model_bytes", disk.model},
                                       {"records_bytes", disk.records},
                                       {"needed_bytes", disk.needed()},
                                       {"free_bytes", disk.free}});
  report.fits = report.fits && disk.fits();
}

namespace {

WireInput wire_input(const MemoryInput& update, const ShardOptions& shards) {
  const MemoryInput pass = of_one_rank(update);
  WireInput input;
  const ModelParameters places = make_parameters(pass.model, pass.head);
  input.network = input.trained = places.specs;
  if (pass.lora) {
    input.has_adapters = true;
    input.trained = adapter_specs(select_slices(*pass.lora, linear_slices(pass.model, places), pass.model.num_layers, "peft"),
                                  pass.lora->adapter_dim, {});
  }
  input.element_bytes = pass.dtype == at::kFloat ? 4 : 2;
  input.sharding = shards.kind;
  input.collectives = shards.collectives;
  input.shard_ranks = shards.shard.size();
  input.num_ranks = shards.num_ranks();
  return input;
}

}  // namespace

double add_wire(PlanReport& report, const MemoryInput& pass, const ShardOptions& shards, const WireEvents& step,
                const ComputeTraffic& compute, const std::optional<PlannedRanks>& planned) {
  if (shards.num_ranks() == 1 && compute.tensor_ranks == 1) return 0;
  const WireBytes bytes = wire_bytes(wire_input(pass, shards), step, shards.shard.size() - 1);  // the last part is the largest
  const auto seconds = [](int64_t count, double speed) { return static_cast<double>(count) / (speed * 1e9); };
  double in_group_s = 0, between_s = 0, tensor_s = 0, reshard_s = 0;
  if (planned) {
    // What leaves a node is limited by the network.
    const auto speed = [&](int ranks) { return ranks > planned->per_node ? planned->net_speed : planned->node_speed; };
    in_group_s = seconds(bytes.in_group, speed(shards.shard.size() * pass.tensor_ranks));
    between_s = seconds(bytes.between_groups, planned->nodes > 1 ? planned->net_speed : planned->node_speed);
    tensor_s = seconds(compute.tensor, speed(compute.tensor_ranks));
    reshard_s = seconds(compute.reshard, speed(shards.shard.size() * pass.tensor_ranks));
  }
  const auto line = [&](const char* where, int64_t count, double time) {
    return str("  ", pad_right(where, 20), pad_left(format_bytes(count), 10), planned ? str("  ", format_number(time), " s") : "", "\n");
  };
  report.text += str("\nSent by a rank in a step, in ", step.passes, step.passes == 1 ? " pass" : " passes", "; ", shards.num_ranks(),
                     " ranks in groups of ", shards.shard.size(), "\n", line("within its group", bytes.in_group, in_group_s),
                     line("to other groups", bytes.between_groups, between_s));
  if (compute.tensor_ranks > 1) report.text += line("to tensor ranks", compute.tensor, tensor_s);
  if (compute.reshard > 0) report.text += line("resharded weights", compute.reshard, reshard_s);
  report.json.set("wire", Json::Object{{"ranks", shards.num_ranks()},
                                       {"group", shards.shard.size()},
                                       {"in_group_bytes", bytes.in_group},
                                       {"between_groups_bytes", bytes.between_groups},
                                       {"tensor_bytes", compute.tensor},
                                       {"reshard_bytes", compute.reshard},
                                       {"in_group_s", in_group_s},
                                       {"between_groups_s", between_s},
                                       {"tensor_s", tensor_s},
                                       {"reshard_s", reshard_s}});
  return in_group_s + between_s + tensor_s + reshard_s;
}

void add_time(PlanReport& report, const StepWork& work, int64_t num_steps, std::string_view what, double wire_s) {
  const Pace pace = measure_pace(work);
  const double step = pace.total() + wire_s, all = step * static_cast<double>(num_steps);
  std::string parts;
  const auto add = [&](const char* name, double seconds) {
    if (seconds > 0) parts += str(parts.empty() ? "" : ", ", name, " ", format_number(seconds), " s");
  };
  add("generate", pace.generate);
  add("log-probs and reference", pace.look);
  add("update", pace.update);
  add("between ranks, if nothing overlaps", wire_s);
  report.text += str("\nTime, measured here with two layers, ", what, "\n  a step about ", format_number(step), " s: ", parts, "\n  ",
                     num_steps, " steps about ", format_duration(all), "\n");
  report.json.set("time", Json::Object{{"step_s", step},
                                       {"wire_s", wire_s},
                                       {"generate_s", pace.generate},
                                       {"look_s", pace.look},
                                       {"update_s", pace.update},
                                       {"all_s", all}});
}

}  // namespace kedge
