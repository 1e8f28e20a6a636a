#pragma once
// A critic that starts with the saves of another one, in its own folder. Independent of networks.
#include <cstdint>
#include <optional>
#include <string>

#include "kedge/core/files.h"

namespace kedge {

struct CriticFork {
  std::optional<int64_t> actor_step = {};  // only the save of this step; none: all that are complete
  bool replaces = false;                   // a critic that the new folder holds already; false: that one stays
  std::string what = {};                   // opens errors
};

// Copies the saves of the critic in `from` (its folder, or that of one of its checkpoints) to `to`, where they belong to no run.
// UsageError if there is nothing to copy; then `to` is as before.
void fork_critic(const Path& from, const Path& to, const CriticFork& fork);

}  // namespace kedge
