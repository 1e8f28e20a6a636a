#pragma once
// Adapters from and to folders in PEFT's layout: adapter_config.json and adapter_model.safetensors.
#include <string>

#include "kedge/core/files.h"
#include "kedge/model/files/model_files.h"
#include "kedge/model/spec/adapter_config.h"

namespace kedge {

// For a base without a score head: load_model then creates one of the adapter's shape, which load_adapter fills.
void start_head_of_adapter(LoadOptions& options, const Path& adapter);

// Adds the folder's adapters to the model. A tensor that fits no linear layer of the model is a UsageError. A score head in the folder
// replaces the base's.
void load_adapter(Model& model, const Path& folder, bool trainable);

// `base` is written as base_model_name_or_path. `config` is that of the base model.
void save_adapter(const Adapters& adapters, const ModelConfig& config, const Path& folder, const std::string& base);
void save_adapter(const Model& model, const Path& folder, const std::string& base);

}  // namespace kedge
