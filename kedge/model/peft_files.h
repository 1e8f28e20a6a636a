#pragma once
// Adapters from and to folders in PEFT's layout: adapter_config.json and adapter_model.safetensors.
#include <string>

#include "kedge/core/files.h"
#include "kedge/model/model.h"

namespace kedge {

// Adds the folder's adapters to the model. What PEFT offers and kedge lacks (DoRA, trained biases, ranks by layer, ...) is a UsageError
// that names the key; a tensor that fits no linear layer of the model is one too.
void load_adapter(Model& model, const Path& folder, bool trainable);

// `base` is written as base_model_name_or_path.
void save_adapter(const Model& model, const Path& folder, const std::string& base);

}  // namespace kedge
