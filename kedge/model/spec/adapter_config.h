#pragma once
// What is known of an adapter in PEFT's layout before a tensor is read: adapter_config.json and the names in
// adapter_model.safetensors. Independent of tensors; peft_files.h reads and writes them.
#include <optional>
#include <string_view>

#include "kedge/core/files.h"
#include "kedge/model/files/weight_files.h"
#include "kedge/model/spec/lora_config.h"

namespace kedge {

inline constexpr const char* kAdapterConfigFile = "adapter_config.json";
inline constexpr const char* kAdapterWeightsFile = "adapter_model.safetensors";
inline constexpr std::string_view kAdapterPrefix = "base_model.model.";  // before the name of every tensor, as PEFT writes it

// What adapter_config.json says of rank, scale and dropout; the names of the tensors say which layers it means. What PEFT offers and
// kedge lacks (DoRA, trained biases, ranks by layer, ...) is a UsageError that names the key.
[[nodiscard]] LoraConfig load_adapter_config(const Path& folder);

// Did the adapter train a score head, which is saved with it?
[[nodiscard]] bool saves_head(const Path& folder);
// That head; none if there is none.
[[nodiscard]] std::optional<HeadOptions> load_adapter_head(const Path& folder);

// The tensor with PEFT's prefix or without; null if there is none.
[[nodiscard]] const TensorEntry* find_adapter_tensor(const WeightFiles& files, std::string_view name);

}  // namespace kedge
