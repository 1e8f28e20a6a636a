#pragma once
// A run's folder as it lies on disk, for commands that look back at it. Reads, never writes, and needs no lock: the run may still go on.
#include <string>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/core/json.h"
#include "kedge/train/checkpoint_store.h"

namespace kedge::cli {

struct RunOnDisk {
  Path folder;                          // absolute
  std::string algorithm;                // the command that made it: "reinforce"
  Path config;                          // its settings with every key, FOLDER/config.yaml
  Path started_in;                      // what relative paths in its settings are relative to
  Json starts;                          // FOLDER/run.json: an entry for every start, the newest last
  std::vector<Checkpoint> checkpoints;  // those that are whole, by step, each step once
};

// Has the folder what every run leaves there?
[[nodiscard]] bool is_run(const Path& folder);

// UsageError where it is none, or what it left cannot be read.
[[nodiscard]] RunOnDisk open_run(const Path& folder);

}  // namespace kedge::cli
