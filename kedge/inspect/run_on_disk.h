#pragma once
// A run's folder on disk, for commands that inspect it. Reads only and needs no lock: the run may still be active.
#include <string>
#include <string_view>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/train/checkpoint/checkpoint_store.h"

namespace kedge {

struct RunOnDisk {
  Path folder;                          // absolute
  std::string algorithm;                // the command that made it: "reinforce"
  Path config;                          // its settings with every key, FOLDER/config.yaml
  Path started_in;                      // what relative paths in its settings are relative to
  Json starts;                          // FOLDER/run.json: an entry for every start, the newest last
  std::vector<Checkpoint> checkpoints;  // those that are complete, by step, each step once
};

// Does the command train a policy on its own answers (online_job.h)? Decided by its name, so that reading a run needs no network.
[[nodiscard]] bool trains_online(std::string_view algorithm);

// Does the folder have the files of a run?
[[nodiscard]] bool is_run(const Path& folder);

// UsageError if it is not a run, or its files cannot be read.
[[nodiscard]] RunOnDisk open_run(const Path& folder);

// A run folder is a program: its settings name commands, and servers that receive the content of token files. Are the folder and what it
// is read from this user's?
[[nodiscard]] bool is_own_run(const Path& folder, unsigned user);
[[nodiscard]] bool is_own_run(const Path& folder);
// UsageError for another user's run with commands that were not allowed.
void check_may_run(const Path& folder, bool allow_commands);

}  // namespace kedge
