#pragma once
// Which model folder is meant where someone names a run, or one of its checkpoints. Reads, never writes; loads nothing.
#include <cstdint>
#include <optional>
#include <string>

#include "kedge/train/checkpoint/checkpoint_store.h"

namespace kedge {

// Has the folder what a checkpoint has?
[[nodiscard]] bool is_checkpoint(const Path& folder);
// The run whose checkpoint it is: the folder above the one above. None where that is no run.
[[nodiscard]] std::optional<Path> run_of_checkpoint(const Path& checkpoint);

struct ModelWish {
  std::optional<int64_t> step = {};  // of these at most one; none: the model that the run left, else the best checkpoint, else the newest
  bool best = false, last = false;
};

struct ModelSource {
  Path folder;                       // of a model or an adapter
  Path started_in;                   // what relative paths in it are relative to
  std::string what;                  // "the checkpoint of step 60, the best by val_rewards"
  std::optional<int64_t> step = {};  // none: not known
};

// For a run or a checkpoint, whose bytes are held against their hashes: a UsageError names damage, a step that is not there, or a wish that
// cannot be had. None for any other folder.
[[nodiscard]] std::optional<ModelSource> find_model_source(const Path& folder, const ModelWish& wish);

}  // namespace kedge
