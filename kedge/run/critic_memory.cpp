#include "kedge/run/critic_memory.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "kedge/core/error.h"
#include "kedge/core/machine.h"

namespace kedge {
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
  input.num_ranks = room.shards.num_ranks();
  input.shard_ranks = room.shards.shard.size();
  input.sharding = room.shards.kind;
  input.tensor_ranks = room.tensor_ranks;
  input.token_ranks = model.sequence_parallel ? room.tensor_ranks : 1;
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
  MemoryDemand demand;
  demand.update = input_of(config, room);
  demand.saves = false;  // a checkpoint is written directly from the tensors, without a copy
  MemoryInput look = demand.update;
  look.rows = config.model.forward_micro_batch_size;
  look.tokens = look.rows * look.longest;
  demand.look = plan_forward(look).pass;
  const bool has_adapters = demand.update.lora.has_value();
  const ReferenceKind kind = wanted_kind(ppo.reward_model, has_adapters);
  if (ppo.combine_rm_and_critic_server)
    demand.reference = {kind, ppo.reward_model == RewardModelPlace::automatic && room.is_cuda && !has_adapters};
  CriticMemory memory;
  memory.verdict = check_memory({demand,
                                 room.free,
                                 {.size = "model.micro_batch_size",
                                  .size_now = config.model.micro_batch_size,
                                  .look_follows = config.model.forward_micro_batch_size == config.model.micro_batch_size,
                                  .reference = "trainer.ppo.reward_model"}});
  memory.reward_model = memory.verdict.reference.value_or(kind);
  if (memory.verdict.reference) {
    const int64_t element = room.dtype == at::kFloat ? 4 : 2;
    memory.reward_bytes = reference_bytes(
        memory.reward_model, flat_size(make_parameters(split_config(room.network, {0, room.tensor_ranks}), room.head).specs) * element,
        room.is_cuda);
  }
  return memory;
}

}  // namespace kedge
