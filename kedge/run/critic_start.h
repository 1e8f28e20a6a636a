#pragma once
// Where a critic begins, on a server or beside a policy: its folder, its head, and whether it fits.
#include <memory>
#include <string>

#include "kedge/critic/critic_model.h"
#include "kedge/critic/serve_config.h"
#include "kedge/model/files/model_folder.h"
#include "kedge/run/critic_memory.h"

namespace kedge {

// The folder of a reward model or, where nobody wants rewards, of any model.
struct CriticStart {
  Path folder;
  ModelConfig network;
  LoadOptions load;
  HeadOptions head;
  bool draws_head = false;  // neither the folder nor an adapter brings one
  CriticMemory memory;
};

// Before weights are read. `key` is that of the folder. UsageError for what cannot be; whether it fits is for the caller to refuse.
[[nodiscard]] CriticStart find_critic_start(const CriticServerConfig& config, const Mesh& mesh, const std::string& key);

// The critic as it is before its first update. Says so where its head is a new one.
[[nodiscard]] std::unique_ptr<CriticModel> start_critic(const CriticServerConfig& config, const CriticStart& start);

}  // namespace kedge
