#pragma once
// Adapters from and to folders in PEFT's layout: adapter_config.json and adapter_model.safetensors.
#include <string>

#include "kedge/core/files.h"
#include "kedge/model/model.h"

namespace kedge {

// What adapter_config.json says of rank, scale and dropout; which layers it means is told by the names of the tensors. What PEFT offers and
// kedge lacks (DoRA, trained biases, ranks by layer, ...) is a UsageError that names the key.
[[nodiscard]] LoraConfig load_adapter_config(const Path& folder);

// Adds the folder's adapters to the model. A tensor that fits no linear layer of the model is a UsageError.
void load_adapter(Model& model, const Path& folder, bool trainable);

// `base` is written as base_model_name_or_path.
void save_adapter(const Model& model, const Path& folder, const std::string& base);

}  // namespace kedge
