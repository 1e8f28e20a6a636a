#pragma once
// How a critic starts in its folder: with what it holds, from scratch, or with the saves of another one; and whether an actor can resume
// with a save. Independent of networks.
#include <cstdint>
#include <optional>
#include <string>

#include "kedge/core/files.h"
#include "kedge/train/checkpoint/run_folder.h"

namespace kedge {

// May a critic start in this folder by resume_if_exists and resume_ignore_no_checkpoint? Else a UsageError. Before fork_critic().
void check_resume(const RunFolderConfig& config, const Path& folder);

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
