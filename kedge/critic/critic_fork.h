#pragma once
// The saves of a critic, by its folder: a critic that starts with those of another one, and whether an actor can resume with one of them.
// Independent of networks.
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

// UsageError if the critic in `folder` has no save of this step, or a damaged one; `what` opens the error if there is none.
void verify_critic_save(const Path& folder, int64_t actor_step, const std::string& what);

}  // namespace kedge
