#include "cli/memory_check.h"

#include <algorithm>
#include <functional>

#include "kedge/core/cuda_device.h"
#include "kedge/core/error.h"
#include "kedge/core/machine.h"

namespace kedge::cli {
namespace {

// One thing that could be set otherwise.
struct Remedy {
  std::string setting;
  std::function<void(MemoryInput&)> apply;
  bool has_stronger = false;  // another one goes further with the same key
};

std::vector<Remedy> remedies_for(const MemoryInput& input, const MemoryLimits& limits) {
  std::vector<Remedy> remedies;
  const int64_t least = std::max<int64_t>(1, limits.least_size);
  for (int64_t size = limits.micro_size / 2; size >= least; size /= 2)
    remedies.push_back({str(limits.size_key, "=", size),
                        [size, all = limits.micro_size](MemoryInput& other) {
                          other.tokens = std::max(other.longest, other.tokens * size / all);
                          other.rows = std::max<int64_t>(1, other.rows * size / all);
                        },
                        size / 2 >= least});
  if (!input.checkpoint)
    remedies.push_back({"model.activations_checkpoint_granularity=full", [](MemoryInput& other) { other.checkpoint = true; }});
  if (input.optimizer.moments == MomentType::fp32)
    remedies.push_back({"model.optim.moments=bf16", [](MemoryInput& other) { other.optimizer.moments = MomentType::bf16; }});
  if (input.is_cuda && !input.optimizer.offload_adam_states)
    remedies.push_back({"model.optim.offload_adam_states=true", [](MemoryInput& other) { other.optimizer.offload_adam_states = true; }});
  if (!input.lora) remedies.push_back({"model.peft.peft_scheme=lora", [](MemoryInput& other) { other.lora.emplace(); }});
  return remedies;
}

int64_t needed_by(const MemoryInput& input, const MemoryPlan& plan, bool copies) {
  return plan.peak() + (copies && !input.is_cuda ? plan.snapshot : 0);
}

}  // namespace

MemoryVerdict check_memory(const MemoryInput& input, const MemoryLimits& limits) {
  MemoryVerdict verdict;
  verdict.plan = plan_memory(input);
  verdict.free = limits.bytes;
  verdict.needed = needed_by(input, verdict.plan, limits.saves);
  if (verdict.needed <= limits.bytes) return verdict;
  const int64_t without_copy = needed_by(input, verdict.plan, false);
  if (without_copy <= limits.bytes) {
    verdict.needed = without_copy;
    verdict.blocks = true;
    return verdict;
  }
  verdict.fits = false;
  const auto fits = [&](const MemoryInput& other) { return needed_by(other, plan_memory(other), false) <= limits.bytes; };
  const std::vector<Remedy> all = remedies_for(input, limits);
  // One change, if one will do; else as many as it takes, from the cheapest on.
  MemoryInput together = input;
  std::string settings;
  for (const Remedy& remedy : all) {
    MemoryInput alone = input;
    remedy.apply(alone);
    if (fits(alone)) verdict.remedies.push_back(remedy.setting);
    if (remedy.has_stronger) continue;
    remedy.apply(together);
    settings += (settings.empty() ? "" : " ") + remedy.setting;
    if (verdict.remedies.empty() && fits(together)) verdict.remedies.push_back(settings);
  }
  return verdict;
}

void require_fit(const MemoryVerdict& verdict, const std::string& what) {
  std::string remedies;
  for (const std::string& remedy : verdict.remedies) remedies += "\n  " + remedy;
  check(verdict.fits, what, " needs ", format_bytes(verdict.needed), " of memory, and ", format_bytes(verdict.free), " are free",
        remedies.empty() ? "; no setting of kedge's would make it fit" : ". What would fit:" + remedies);
}

int64_t free_bytes(at::Device device) { return device.is_cuda() ? free_cuda_bytes() : this_machine().available_bytes; }

}  // namespace kedge::cli
