#pragma once
// A run's folder as it lies on disk, for commands that look back at it. Reads, never writes, and needs no lock: the run may still go on.
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
  std::vector<Checkpoint> checkpoints;  // those that are whole, by step, each step once
};

// Does the command train a policy on its own answers (online_job.h)? Told by its name alone, so that reading a run needs no network.
[[nodiscard]] bool trains_online(std::string_view algorithm);

// Has the folder what every run leaves there?
[[nodiscard]] bool is_run(const Path& folder);

// UsageError where it is none, or what it left cannot be read.
[[nodiscard]] RunOnDisk open_run(const Path& folder);

// A run folder is a program: its settings name commands, and servers that are shown the content of token files. Are the folder and what it
// is read from this user's?
[[nodiscard]] bool is_own_run(const Path& folder, unsigned user);
[[nodiscard]] bool is_own_run(const Path& folder);
// UsageError for a run of somebody else whose commands nobody allowed.
void check_may_run(const Path& folder, bool allow_commands);

}  // namespace kedge
