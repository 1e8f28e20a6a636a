#pragma once
// Where a job computes, by the keys of its `trainer` section, and the adapters it trains.
#include "kedge/dist/mesh.h"
#include "kedge/model/model.h"
#include "kedge/train/training_config.h"

namespace kedge {

// This rank's place and device; the number of ranks that were started must be the one that was asked for. Sets the CPU's threads.
[[nodiscard]] Mesh open_mesh(const ComputeConfig& compute);

// fp32, bf16 or fp16: what was asked for, else what the device is best at.
[[nodiscard]] at::ScalarType dtype_of(const ComputeConfig& compute, at::Device device);

// How the weights of a network that trains are kept; those below adapters are frozen. UsageError for fp16.
[[nodiscard]] StorageOptions training_storage(const ComputeConfig& compute, const NetworkConfig& network, at::Device device);

// The adapters of `model.peft`, to train: new ones, or those of a folder. Nothing without a scheme.
void add_trained_adapters(Model& model, const NetworkConfig& network);

}  // namespace kedge
