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
  bool draws_head = false;        // neither the folder nor an adapter has one
  Group group = Group::single();  // the ranks that have different rows
  CriticMemory memory;
};

// The keys of a critic's folder and of its network.
struct CriticKeys {
  std::string folder = "pretrained_checkpoint.restore_from_path", model = "model";
  bool may_split = true;  // ranks may compute it together: all of them get the same rows
};

// Before weights are read. UsageError for invalid settings; the caller checks whether it fits. All ranks of the mesh hold it together.
// Collective.
[[nodiscard]] CriticStart find_critic_start(const CriticServerConfig& config, const Mesh& mesh, const CriticKeys& keys = {});

// The critic before its first update. Logs if its head is new. Collective.
[[nodiscard]] std::unique_ptr<CriticModel> start_critic(const CriticServerConfig& config, const CriticStart& start);

}  // namespace kedge
