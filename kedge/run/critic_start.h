#pragma once
// How a critic starts, on a server or in the policy's process: its folder, its head, and whether it fits.
#include <memory>
#include <string>

#include "kedge/critic/critic_model.h"
#include "kedge/critic/serve_config.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/run/critic_memory.h"

namespace kedge {

// The folder of a reward model or, without rewards, of any model.
struct CriticStart {
  Path folder;
  ModelConfig network;
  LoadOptions load;
  HeadOptions head;
  bool draws_head = false;  // neither the folder nor an adapter has one
  CriticMemory memory;
};

// Before weights are read. `key` is that of the folder. UsageError for invalid settings; the caller checks whether it fits.
[[nodiscard]] CriticStart find_critic_start(const CriticServerConfig& config, const Mesh& mesh, const std::string& key);

// The critic before its first update. Logs if its head is new.
[[nodiscard]] std::unique_ptr<CriticModel> start_critic(const CriticServerConfig& config, const CriticStart& start);

}  // namespace kedge
