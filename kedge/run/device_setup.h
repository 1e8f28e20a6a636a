#pragma once
// The device of a job, from its `trainer` section, and the adapters it trains.
#include <optional>
#include <string>

#include "kedge/dist/mesh.h"
#include "kedge/model/model.h"
#include "kedge/train/training_config.h"

namespace kedge {

// Ranks that a plan imagines, one per GPU, and how fast a GPU sends, in GB/s: to others of its node, and to other nodes.
struct PlannedRanks {
  int nodes = 1, per_node = 1;
  double node_speed = 350, net_speed = 40;

  [[nodiscard]] int size() const { return nodes * per_node; }
};

// This rank's place and device; the number of started ranks must match the settings. Sets the CPU's threads.
[[nodiscard]] Mesh open_mesh(const ComputeConfig& compute, const std::optional<PlannedRanks>& planned = {});

// fp32, bf16 or fp16: as configured, else the device's default.
[[nodiscard]] at::ScalarType dtype_of(const ComputeConfig& compute, at::Device device);

// The ranks as `model.tensor_model_parallel_size` divides them. UsageError if it divides neither them nor the model. Collective.
[[nodiscard]] Mesh split_mesh(const Mesh& mesh, const NetworkConfig& network, const ModelConfig& model,
                              const std::string& section = "model");

// The same for a number of ranks that `key` gives.
[[nodiscard]] Mesh split_mesh(const Mesh& mesh, int size, const ModelConfig& model, const std::string& key);

// Who holds what of a trained network. UsageError if the groups do not divide the ranks; `section` opens it. Collective.
[[nodiscard]] ShardOptions shard_options(const NetworkConfig& network, const Mesh& mesh, const std::string& section = "model");

// How the weights of a trained network are stored; with adapters they are frozen. UsageError for fp16.
[[nodiscard]] StorageOptions training_storage(const ComputeConfig& compute, const NetworkConfig& network, at::Device device,
                                              const ShardOptions& shards = {}, const TensorRanks& tensor = {});

// The adapters of `model.peft`, to train: new ones, or those of a folder. Nothing without a scheme.
void add_trained_adapters(Model& model, const NetworkConfig& network);

}  // namespace kedge
