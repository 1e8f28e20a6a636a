#include "cli/critic_memory.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "kedge/core/error.h"
#include "kedge/core/machine.h"

namespace kedge::cli {
namespace {

MemoryInput input_of(const CriticServerConfig& config, const CriticRoom& room) {
  const CriticServerConfig::Model& model = config.model;
  MemoryInput input;
  input.model = room.network;
  input.head = room.head;
  input.dtype = room.dtype;
  input.is_cuda = room.is_cuda;
  if (model.peft.peft_scheme == PeftScheme::lora) input.lora = model.peft.lora_tuning;
  input.optimizer = model.optim;
  input.rows = model.micro_batch_size;
  input.longest = std::min(model.encoder_seq_length, room.network.max_positions);
  input.tokens = input.rows * input.longest;
  input.checkpoint = model.activations_checkpoint_granularity == Recompute::full;
  input.threads = at::get_num_threads();
  return input;
}

ReferenceKind wanted_kind(RewardModelPlace place, bool has_adapters) {
  if (has_adapters) return ReferenceKind::adapters_off;
  return place == RewardModelPlace::swapped ? ReferenceKind::swapped : ReferenceKind::resident;
}

}  // namespace

std::string CriticMemory::reward_model_text() const {
  if (reward_model == ReferenceKind::adapters_off) return "the network without its adapters, nothing more";
  if (reward_model == ReferenceKind::resident) return "resident, " + format_bytes(reward_bytes.device);
  return "swapped in for every call, " + format_bytes(reward_bytes.device + reward_bytes.host) + " of host memory at most";
}

CriticMemory plan_critic_memory(const CriticServerConfig& config, const CriticRoom& room) {
  const CriticServerConfig::Ppo& ppo = config.trainer.ppo;
  const MemoryInput input = input_of(config, room);
  const int64_t element = room.dtype == at::kFloat ? 4 : 2;
  const int64_t parameter_bytes = flat_size(make_parameters(room.network, room.head).specs) * element;
  const auto plan_with = [&](ReferenceKind kind) {
    CriticMemory memory;
    memory.reward_model = kind;
    if (ppo.combine_rm_and_critic_server) memory.reward_bytes = reference_bytes(kind, parameter_bytes, room.is_cuda);
    // A checkpoint is written from the very tensors: there is no copy to make room for.
    memory.verdict = check_memory(
        input,
        {.bytes = room.free - memory.reward_bytes.device, .micro_size = input.rows, .saves = false, .size_key = "model.micro_batch_size"});
    memory.verdict.needed += memory.reward_bytes.device;
    memory.verdict.free = room.free;
    return memory;
  };
  const bool may_swap = ppo.combine_rm_and_critic_server && room.is_cuda && !input.lora;
  CriticMemory memory = plan_with(wanted_kind(ppo.reward_model, input.lora.has_value()));
  if (!memory.verdict.fits && may_swap && memory.reward_model == ReferenceKind::resident) {
    const CriticMemory swapped = plan_with(ReferenceKind::swapped);
    if (ppo.reward_model == RewardModelPlace::automatic) {
      memory = swapped;
    } else if (swapped.verdict.fits) {
      memory.verdict.remedies.emplace_back("trainer.ppo.reward_model=swapped");
    }
  }
  const int64_t host = memory.reward_bytes.host + memory.verdict.plan.host_optimizer;
  check(!memory.verdict.fits || host <= room.host_free, "the critic needs ", format_bytes(host),
        " of host memory for what is not kept on the GPU, and ", format_bytes(room.host_free),
        " are free. trainer.ppo.reward_model=swapped and model.optim.offload_adam_states=true are what takes it");
  return memory;
}

}  // namespace kedge::cli
