#include "kedge/run/memory_check.h"

#include <algorithm>
#include <array>
#include <functional>

#include "kedge/core/cuda_device.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/machine.h"

namespace kedge {
namespace {

// One choice of the options that a request leaves open.
struct Way {
  std::optional<ReferenceKind> reference;
  bool copies = true;  // a checkpoint is written from a copy
};

// All phases of a run that goes this way. Keys and values count as `cache`.
std::vector<PhaseBytes> phases_of(const MemoryDemand& demand, const MemoryPlan& plan, const Way& way, int64_t cache) {
  const bool is_cuda = demand.update.is_cuda;
  const ReferenceBytes reference = way.reference ? reference_bytes(*way.reference, plan.parameters, is_cuda) : ReferenceBytes{};
  const int64_t others = demand.companions + demand.beside + reference.device;
  const int64_t always = plan.total() + others;
  const int64_t host = plan.host_optimizer + reference.host + (is_cuda ? gpu_host_bytes() : 0);
  const bool generates = demand.generation.has_value();
  const int64_t held = generates && !demand.generation->releases ? cache : 0;  // also while the model trains
  const int64_t snapshot = demand.saves && way.copies ? plan.snapshot : 0;
  // On a CPU the copy exists in addition to the next step.
  const int64_t waiting = is_cuda ? 0 : snapshot, host_waiting = is_cuda ? snapshot : 0;

  std::vector<PhaseBytes> phases = {{"load", plan.parameters + plan.master_weights + plan.fixed + others, host}};
  const auto add = [&](const std::string& name, int64_t work) { phases.push_back({name, always + waiting + work, host + host_waiting}); };
  if (generates) add("generate", cache + demand.generation->weights.value_or(plan.gathered) + demand.generation->bytes.workspace);
  if (demand.looks) add("log-probs", cache + plan.gathered + plan.look);
  if (way.reference && generates) add("reference", cache + plan.gathered + plan.look);
  if (demand.look > 0) add("values", plan.gathered + demand.look);
  add("update", held + plan.peak() - plan.total());
  if (demand.saves) phases.push_back({"save", always + held + (is_cuda ? 0 : snapshot), host + host_waiting});
  return phases;
}

int64_t most_of(const std::vector<PhaseBytes>& phases, int64_t PhaseBytes::*where) {
  int64_t most = 0;
  for (const PhaseBytes& phase : phases) most = std::max(most, phase.*where);
  return most;
}

// The KV cache takes what the others leave, with a small reserve, and at most what all answers of a step need.
int64_t cache_for(const MemoryDemand& demand, const MemoryPlan& plan, const Way& way, const MemoryRoom& room) {
  if (!demand.generation) return 0;
  const GenerationDemand& generation = *demand.generation;
  if (generation.given) return *generation.given;
  int64_t others = 0;
  for (const PhaseBytes& phase : phases_of(demand, plan, way, 0))
    if (!generation.releases || phase.name != "update") others = std::max(others, phase.device);
  const int64_t left = room.device / room.num_ranks - others;
  return std::clamp(left * 19 / 20, generation.bytes.one, std::max(generation.bytes.cache, generation.bytes.one));
}

MemoryFit try_way(const MemoryDemand& demand, const MemoryRoom& room, const Way& way) {
  MemoryFit verdict;
  verdict.plan = plan_memory(demand.update);
  verdict.cache = cache_for(demand, verdict.plan, way, room);
  verdict.phases = phases_of(demand, verdict.plan, way, verdict.cache);
  verdict.reference = way.reference;
  if (way.reference) verdict.reference_bytes = reference_bytes(*way.reference, verdict.plan.parameters, demand.update.is_cuda).device;
  verdict.needed = (most_of(verdict.phases, &PhaseBytes::device) - demand.beside) * room.num_ranks + demand.beside;
  verdict.host_needed = demand.update.is_cuda ? most_of(verdict.phases, &PhaseBytes::host) * room.host_ranks : 0;
  verdict.free = room.device;
  verdict.host_free = room.host;
  verdict.fits = verdict.needed <= room.device && (!demand.update.is_cuda || verdict.host_needed <= room.host);
  verdict.blocks = demand.saves && !way.copies;
  return verdict;
}

// The first way that fits, from the fastest on; if none does, the last one.
MemoryFit best_way(const MemoryDemand& demand, const MemoryRoom& room) {
  std::vector<Way> ways;
  const auto add = [&](std::optional<ReferenceKind> reference) {
    ways.push_back({reference, true});
    if (demand.saves) ways.push_back({reference, false});
  };
  add(demand.reference ? std::optional(demand.reference->kind) : std::nullopt);
  if (demand.reference && demand.reference->may_swap) add(ReferenceKind::swapped);
  MemoryFit verdict;
  for (const Way& way : ways) {
    verdict = try_way(demand, room, way);
    if (verdict.fits) break;
  }
  return verdict;
}

// One setting that could be changed.
struct Remedy {
  std::string setting;
  std::function<void(MemoryDemand&)> apply;
  bool has_stronger = false;  // another one goes further with the same key
};

std::vector<Remedy> remedies_for(const MemoryDemand& demand, const MemoryKeys& keys) {
  std::vector<Remedy> remedies;
  const MemoryInput& input = demand.update;
  const int64_t least = std::max<int64_t>(1, keys.size_least);
  for (int64_t size = keys.size_now / 2; size >= least; size /= 2)
    remedies.push_back({str(keys.size, "=", size),
                        [size, all = keys.size_now, look_follows = keys.look_follows](MemoryDemand& other) {
                          if (look_follows) other.look = other.look / all * size;
                          other.update.tokens = std::max(other.update.longest, other.update.tokens * size / all);
                          other.update.rows = std::max<int64_t>(1, other.update.rows * size / all);
                          if (other.update.prompts > 0) other.update.prompts = std::max<int64_t>(1, other.update.prompts * size / all);
                          other.update.answers = other.update.answers * size / all;
                        },
                        size / 2 >= least});
  if (demand.generation && demand.generation->given)
    remedies.push_back({"model.engine.memory=auto", [](MemoryDemand& other) { other.generation->given.reset(); }});
  if (!input.checkpoint)
    remedies.push_back({"model.activations_checkpoint_granularity=full", [](MemoryDemand& other) { other.update.checkpoint = true; }});
  if (demand.generation && !demand.generation->releases && input.is_cuda)
    remedies.push_back({"model.engine.release_in_training=true", [](MemoryDemand& other) { other.generation->releases = true; }});
  if (demand.reference && demand.reference->kind == ReferenceKind::resident && !demand.reference->may_swap && input.is_cuda &&
      !keys.reference.empty())
    remedies.push_back({keys.reference + "=swapped", [](MemoryDemand& other) { other.reference->kind = ReferenceKind::swapped; }});
  if (input.optimizer.moments == MomentType::fp32)
    remedies.push_back({"model.optim.moments=bf16", [](MemoryDemand& other) { other.update.optimizer.moments = MomentType::bf16; }});
  if (input.is_cuda && !input.optimizer.offload_adam_states)
    remedies.push_back(
        {"model.optim.offload_adam_states=true", [](MemoryDemand& other) { other.update.optimizer.offload_adam_states = true; }});
  if (input.shard_ranks > 1 && input.sharding != Sharding::all)
    remedies.push_back({"model.sharding=all", [](MemoryDemand& other) { other.update.sharding = Sharding::all; }});
  if (!input.lora)
    remedies.push_back({"model.peft.peft_scheme=lora", [](MemoryDemand& other) {
                          other.update.lora.emplace();
                          if (other.reference) other.reference = {ReferenceKind::adapters_off, false};
                        }});
  return remedies;
}

}  // namespace

PhaseBytes MemoryFit::worst() const {
  const auto found =
      std::max_element(phases.begin(), phases.end(), [](const PhaseBytes& a, const PhaseBytes& b) { return a.device < b.device; });
  return found == phases.end() ? PhaseBytes{} : *found;
}

MemoryFit check_memory(const MemoryRequest& question) {
  const auto& [demand, room, keys] = question;
  MemoryFit verdict = best_way(demand, room);
  if (verdict.fits) return verdict;
  const std::vector<Remedy> all = remedies_for(demand, keys);
  // One change, if one is enough; else as many as needed, from the cheapest on.
  MemoryDemand together = demand;
  std::string settings;
  bool has_size = false;  // the largest that fits is chosen
  for (const Remedy& remedy : all) {
    const bool is_size = remedy.setting.starts_with(keys.size + "=");
    MemoryDemand alone = demand;
    remedy.apply(alone);
    if (!(is_size && has_size) && best_way(alone, room).fits) {
      verdict.remedies.push_back(remedy.setting);
      has_size = has_size || is_size;
    }
    if (remedy.has_stronger) continue;
    remedy.apply(together);
    settings += (settings.empty() ? "" : " ") + remedy.setting;
    if (verdict.remedies.empty() && best_way(together, room).fits) verdict.remedies.push_back(settings);
  }
  return verdict;
}

int64_t keep_logits(MemoryRequest& request) {
  MemoryInput& update = request.demand.update;
  if (!update.is_cuda || update.head.kind != HeadKind::language) return 0;
  update.kept_logits = update.tokens * of_one_rank(update).model.vocab_size * 4;
  const MemoryFit verdict = check_memory(request);
  // What is planned is not what is free: the rest is for fragments, and for others on the card.
  if (!verdict.fits || verdict.needed > verdict.free / 4 * 3) update.kept_logits = 0;
  return update.kept_logits;
}

void require_fit(const MemoryFit& verdict, const std::string& what) {
  if (verdict.fits) return;
  std::string remedies;
  for (const std::string& remedy : verdict.remedies) remedies += "\n  " + remedy;
  const bool is_host = verdict.needed <= verdict.free;
  const std::string phase = verdict.worst().name;
  throw UsageError(str(what, " needs ", format_bytes(is_host ? verdict.host_needed : verdict.needed), " of ", is_host ? "host " : "",
                       "memory", is_host || phase.empty() ? "" : " (" + phase + ")", ", and ",
                       format_bytes(is_host ? verdict.host_free : verdict.free), " are free",
                       remedies.empty() ? "; no setting would make it fit" : ". What would fit:" + remedies));
}

MemoryRoom least_room(const Mesh& mesh, int64_t device, int64_t host) {
  // Machines have equal numbers of ranks, so the highest local rank gives that number.
  std::array<double, 3> most = {static_cast<double>(mesh.local_rank), -static_cast<double>(device), -static_cast<double>(host)};
  mesh.world.all_reduce(std::span<double>(most), Reduce::max);
  const int num_here = static_cast<int>(most[0]) + 1;
  const int num_devices = mesh.device.is_cuda() ? std::max(1, num_cuda_devices()) : 1;
  return {.device = static_cast<int64_t>(-most[1]),
          .host = static_cast<int64_t>(-most[2]),
          .num_ranks = (num_here + num_devices - 1) / num_devices,
          .host_ranks = num_here};
}

MemoryRoom free_room(const Mesh& mesh) {
  if (mesh.imagined_bytes) return {.device = *mesh.imagined_bytes, .host = kUnknownBytes};
  const int64_t host = this_machine().available_bytes;
  // The context of a GPU already exists, and is part of what the run needs.
  return least_room(mesh, mesh.device.is_cuda() ? free_cuda_bytes() + context_bytes() : host, host);
}

}  // namespace kedge
