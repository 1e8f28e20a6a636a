#include <ATen/Parallel.h>

#include "kedge/model/model_folder.h"

#include "cli/compute.h"
#include "cli/training_job.h"

namespace kedge::cli {

TrainingSetup::TrainingSetup(const TrainingJob& given)
    : job(given),
      mesh(open_mesh(job.compute)),
      folder(find_model_folder(job.model_path, job.model_key)),
      network(load_model_config(folder)),
      tokenizer(load_tokenizer(folder)) {
  job.limit_length(network.max_positions);
  task = job.make_task(model, *tokenizer, folder);
  plan = plan_supervised(job.loop, task, job.batches(), mesh.world.size(), "trainer." + job.name);
  data = measure_data(task.train, job.batches().micro_size);
}

StorageOptions TrainingSetup::storage() const { return training_storage(job.compute, job.network, mesh.device); }

int64_t TrainingSetup::cache_bytes() const {
  return job.cache_bytes ? job.cache_bytes(network, storage().dtype == at::kFloat ? 4 : 2, data.largest_micro.longest) : 0;
}

MemoryQuestion TrainingSetup::memory_question() const {
  MemoryDemand demand;
  MemoryInput& input = demand.update;
  input.model = network;
  input.head = job.head();
  input.dtype = storage().dtype;
  input.is_cuda = mesh.device.is_cuda();
  if (job.network.peft.peft_scheme == PeftScheme::lora) input.lora = job.network.peft.lora_tuning;
  input.optimizer = job.network.optim;
  input.num_ranks = mesh.world.size();
  input.tokens = data.largest_micro.tokens;
  input.rows = data.largest_micro.rows;
  input.longest = data.largest_micro.longest;
  input.checkpoint = job.network.activations_checkpoint_granularity == Recompute::full;
  input.threads = at::get_num_threads();
  if (const int64_t cache = cache_bytes(); cache > 0)  // while samples are drawn between steps
    demand.generation = {.bytes = {.cache = cache, .one = cache}, .given = cache, .releases = true};
  demand.saves = plan.intervals.save > 0 && job.run.create_checkpoint_callback;
  return {demand, free_room(mesh), {.size_now = job.batches().micro_size}};
}

}  // namespace kedge::cli
