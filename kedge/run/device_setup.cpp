#include "kedge/run/device_setup.h"

#include <array>
#include <span>

#include <ATen/Parallel.h>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/model/files/peft_files.h"

namespace kedge {

Mesh open_mesh(const ComputeConfig& compute, const std::optional<PlannedRanks>& planned) {
  const bool imagines_gpus = planned && planned->gpu_bytes;
  const std::string device = imagines_gpus ? "cpu" : compute.accelerator == "gpu" ? "cuda" : compute.accelerator;
  Mesh mesh = Mesh::from_environment({.device = device, .device_key = "trainer.accelerator", .transport = compute.transport});
  if (planned) {
    check(mesh.world.size() == 1, "--mesh: ", planned->size(), " ranks are planned by one process, but ", mesh.world.size(),
          " were started");
    mesh.world = mesh.data = Group::imagined(planned->size());
    mesh.imagined_bytes = planned->gpu_bytes;
    if (imagines_gpus) mesh.device = at::Device(at::kCUDA, 0);
  }
  const int num_ranks = mesh.world.size();
  const int64_t wanted = compute.devices.value_or(0) * compute.num_nodes.value_or(1);
  check(!compute.devices || wanted == num_ranks, "trainer.devices x trainer.num_nodes: ", wanted, " ranks, but ", num_ranks,
        num_ranks == 1 ? " was started; mpirun -n N starts more" : " were started");
  std::array<double, 1> num_machines = {mesh.local_rank == 0 ? 1.0 : 0.0};
  mesh.world.all_reduce(std::span<double>(num_machines), Reduce::sum);
  if (planned) num_machines[0] = planned->nodes;
  check(!compute.num_nodes || static_cast<double>(*compute.num_nodes) == num_machines[0],
        "trainer.num_nodes: ", compute.num_nodes.value_or(0), ", but ", num_ranks == 1 ? "one rank was" : "ranks were", " started on ",
        num_machines[0], num_machines[0] == 1 ? " machine" : " machines");
  if (compute.deterministic && mesh.device.is_cuda() && !imagines_gpus) make_cuda_deterministic();
  if (compute.threads > 0) at::set_num_threads(static_cast<int>(compute.threads));
  return mesh;
}

at::ScalarType dtype_of(const ComputeConfig& compute, at::Device device) {
  if (compute.precision) return parse_dtype(*compute.precision, "trainer.precision");
  return device.is_cuda() ? at::kBFloat16 : at::kFloat;
}

Mesh split_mesh(const Mesh& mesh, const NetworkConfig& network, const ModelConfig& model, const std::string& section) {
  return split_mesh(mesh, network.tensor_model_parallel_size, model, section + ".tensor_model_parallel_size");
}

Mesh split_mesh(const Mesh& mesh, int64_t tensor_ranks, const ModelConfig& model, const std::string& key) {
  const int size = static_cast<int>(tensor_ranks);
  check(mesh.world.size() % size == 0, key, ": ", size, " ranks do not divide the ", mesh.world.size(),
        mesh.world.size() == 1 ? " rank" : " ranks", " of the job", mesh.world.size() == 1 ? "; mpirun -n N starts more" : "");
  check_tensor_split(model, size, key);
  return mesh.with_tensor_ranks(size);
}

ShardOptions shard_options(const NetworkConfig& network, const Mesh& mesh, const std::string& section) {
  const Group& data = mesh.data;
  const int size = static_cast<int>(network.sharding_group.value_or(data.size()));
  check(size <= data.size() && data.size() % size == 0, section, ".sharding_group: ", size, " ranks do not divide the ", data.size(),
        data.size() == 1 ? " rank" : " ranks", mesh.tensor.is_split() ? " that have other rows of a batch" : " of the job");
  const bool is_distributed = network.optim.name == OptimizerKind::distributed_fused_adam;
  ShardOptions options;
  options.kind = network.sharding.value_or(is_distributed ? Sharding::optimizer : Sharding::none);
  options.shard = size == data.size() ? data : mesh.groups_of(size);
  options.replicas = size == data.size() ? Group::single() : mesh.across_groups_of(size);
  options.collectives = network.collectives;
  return options;
}

StorageOptions training_storage(const ComputeConfig& compute, const NetworkConfig& network, at::Device device, const ShardOptions& shards,
                                const TensorRanks& tensor) {
  StorageOptions storage{dtype_of(compute, device), device, network.peft.peft_scheme == PeftScheme::none, shards, tensor};
  storage.divides_tokens = network.sequence_parallel && tensor.is_split();
  check(storage.dtype != at::kHalf, "trainer.precision: ", *compute.precision, " is not supported; bf16 has the range that training needs");
  return storage;
}

void add_trained_adapters(Model& model, const NetworkConfig& network) {
  const PeftConfig& peft = network.peft;
  if (peft.peft_scheme == PeftScheme::none) return;
  if (peft.restore_from_path) return load_adapter(model, *peft.restore_from_path, true);
  model.add_adapters(peft.lora_tuning, true, "model.peft.lora_tuning");
  model.adapters()->initialise(static_cast<uint64_t>(network.seed));
}

}  // namespace kedge
