#pragma once
// A critic that begins with the saves of another one, in a folder of its own. Knows no networks.
#include <cstdint>
#include <optional>
#include <string>

#include "kedge/core/files.h"

namespace kedge {

struct CriticFork {
  std::optional<int64_t> actor_step = {};  // only the save of this step; none: all that are whole
  std::string what = {};                   // opens errors
};

// Copies the saves of the critic in `from` (its folder, or that of one of its checkpoints) to `to`, where they belong to nobody. Does
// nothing where `to` holds a critic already. UsageError where there is nothing to copy.
void fork_critic(const Path& from, const Path& to, const CriticFork& fork);

}  // namespace kedge
