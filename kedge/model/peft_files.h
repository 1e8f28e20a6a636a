#pragma once
// Adapters from and to folders in PEFT's layout: adapter_config.json and adapter_model.safetensors.
#include <optional>
#include <string>

#include "kedge/core/files.h"
#include "kedge/model/model_files.h"

namespace kedge {

// What adapter_config.json says of rank, scale and dropout; which layers it means is told by the names of the tensors. What PEFT offers and
// kedge lacks (DoRA, trained biases, ranks by layer, ...) is a UsageError that names the key.
[[nodiscard]] LoraConfig load_adapter_config(const Path& folder);

// The score head that came with the adapters, where there is one.
[[nodiscard]] std::optional<HeadOptions> load_adapter_head(const Path& folder);
// For a base without a score head: load_model then makes one of the adapter's shape, which load_adapter fills.
void start_head_of_adapter(LoadOptions& options, const Path& adapter);

// Adds the folder's adapters to the model. A tensor that fits no linear layer of the model is a UsageError. What the folder holds of a
// score head takes the place of the base's values.
void load_adapter(Model& model, const Path& folder, bool trainable);

// `base` is written as base_model_name_or_path. `config` is that of the model they stand on.
void save_adapter(const Adapters& adapters, const ModelConfig& config, const Path& folder, const std::string& base);
void save_adapter(const Model& model, const Path& folder, const std::string& base);

}  // namespace kedge
