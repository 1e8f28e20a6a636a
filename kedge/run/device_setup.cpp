#include "kedge/run/device_setup.h"

#include <array>
#include <span>

#include <ATen/Parallel.h>

#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/model/files/peft_files.h"

namespace kedge {

Mesh open_mesh(const ComputeConfig& compute, const std::optional<PlannedRanks>& planned) {
  const std::string device = compute.accelerator == "gpu" ? "cuda" : compute.accelerator;
  Mesh mesh = Mesh::from_environment({.device = device, .device_key = "trainer.accelerator", .transport = compute.transport});
  if (planned) {
    check(mesh.world.size() == 1, "--mesh: ", planned->size(), " ranks are planned by one process, but ", mesh.world.size(),
          " were started");
    mesh.world = Group::imagined(planned->size());
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
  if (compute.deterministic && mesh.device.is_cuda()) make_cuda_deterministic();
  if (compute.threads > 0) at::set_num_threads(static_cast<int>(compute.threads));
  return mesh;
}

at::ScalarType dtype_of(const ComputeConfig& compute, at::Device device) {
  if (compute.precision) return parse_dtype(*compute.precision, "trainer.precision");
  return device.is_cuda() ? at::kBFloat16 : at::kFloat;
}

ShardOptions shard_options(const NetworkConfig& network, const Mesh& mesh, const std::string& section) {
  const Group& world = mesh.world;
  const int size = static_cast<int>(network.sharding_group.value_or(world.size()));
  check(size <= world.size() && world.size() % size == 0, section, ".sharding_group: ", size, " ranks do not divide the ", world.size(),
        world.size() == 1 ? " rank" : " ranks", " of the job");
  const bool is_distributed = network.optim.name == OptimizerKind::distributed_fused_adam;
  ShardOptions options;
  options.kind = network.sharding.value_or(is_distributed ? Sharding::optimizer : Sharding::none);
  options.shard = size == world.size() ? world : mesh.groups_of(size);
  options.replicas = size == world.size() ? Group::single() : mesh.across_groups_of(size);
  options.collectives = network.collectives;
  return options;
}

StorageOptions training_storage(const ComputeConfig& compute, const NetworkConfig& network, at::Device device, const ShardOptions& shards) {
  const StorageOptions storage{dtype_of(compute, device), device, network.peft.peft_scheme == PeftScheme::none, shards};
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
