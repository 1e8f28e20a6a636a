#include <ATen/Parallel.h>

#include "kedge/model/files/model_folder.h"
#include "kedge/run/device_setup.h"
#include "kedge/run/supervised_job.h"

namespace kedge {

SupervisedSetup::SupervisedSetup(SupervisedJob& given, const std::optional<PlannedRanks>& planned)
    : job(given),
      sections(job.sections()),
      mesh(open_mesh(sections.compute, planned)),
      folder(find_model_folder(sections.model_path, sections.model_key)),
      network(load_model_config(folder)),
      tokenizer(load_tokenizer(folder)) {
  mesh = split_mesh(mesh, sections.network, network);
  shards = shard_options(sections.network, mesh);
  job.limit_length(network.max_positions);
  task = job.make_task({model, *tokenizer, network.vocab_size, folder});
  plan = plan_supervised(sections.loop, task, job.batches(), mesh.data.size(), "trainer." + sections.name);
  data = measure_data(task.train, job.batches().micro_size);
}

StorageOptions SupervisedSetup::storage() const {
  return training_storage(sections.compute, sections.network, mesh.device, shards, mesh.tensor);
}

int64_t SupervisedSetup::cache_bytes() const {
  return job.cache_bytes(split_config(network, {mesh.tensor.rank(), mesh.tensor.size()}), storage().dtype == at::kFloat ? 4 : 2,
                         data.largest_micro.longest);
}

MemoryRequest SupervisedSetup::memory_request() const {
  MemoryDemand demand;
  MemoryInput& input = demand.update;
  input.model = network;
  input.head = job.head();
  input.dtype = storage().dtype;
  input.is_cuda = mesh.device.is_cuda();
  if (sections.network.peft.peft_scheme == PeftScheme::lora) input.lora = sections.network.peft.lora_tuning;
  input.optimizer = sections.network.optim;
  input.num_ranks = mesh.data.size();
  input.tensor_ranks = mesh.tensor.size();
  input.token_ranks = storage().divides_tokens ? input.tensor_ranks : 1;
  input.shard_ranks = shards.shard.size();
  input.sharding = shards.kind;
  input.tokens = data.largest_micro.tokens;
  input.rows = data.largest_micro.rows;
  input.longest = data.largest_micro.longest;
  input.checkpoint = sections.network.activations_checkpoint_granularity == Recompute::full;
  input.threads = at::get_num_threads();
  if (const int64_t cache = cache_bytes(); cache > 0)  // while sampling between steps
    demand.generation = {.bytes = {.cache = cache, .one = cache}, .given = cache, .releases = true};
  const ReferenceUse use = job.reference_use();
  demand.looks = use.exists;
  if (use.copies && input.lora) demand.reference = {ReferenceKind::adapters_off, false};
  if (use.copies && !input.lora) demand.reference = {ReferenceKind::resident, true};
  demand.saves = plan.intervals.save > 0 && sections.run.saves();
  MemoryRequest request{demand, free_room(mesh), {.size_now = job.batches().micro_size}};
  static_cast<void>(keep_logits(request));
  return request;
}

}  // namespace kedge
