#pragma once
// The model folder of a run, or of one of its checkpoints. Reads only; loads nothing.
#include <cstdint>
#include <optional>
#include <string>

#include "kedge/train/checkpoint/checkpoint_store.h"

namespace kedge {

// Is the folder a checkpoint?
[[nodiscard]] bool is_checkpoint(const Path& folder);
// The run whose checkpoint it is: the folder above the one above. None if that is not a run.
[[nodiscard]] std::optional<Path> run_of_checkpoint(const Path& checkpoint);

struct ModelWish {
  std::optional<int64_t> step = {};  // of these at most one; none: the run's final model, else the best checkpoint, else the newest
  bool best = false, last = false;
};

struct ModelSource {
  Path folder;                       // of a model or an adapter
  Path started_in;                   // what relative paths in it are relative to
  std::string what;                  // "the checkpoint of step 60, the best by val_rewards"
  std::optional<int64_t> step = {};  // none: not known
};

// For a run or a checkpoint, whose bytes are checked against their hashes: a UsageError names damage, a missing step, or a choice that
// does not exist. None for any other folder.
[[nodiscard]] std::optional<ModelSource> find_model_source(const Path& folder, const ModelWish& wish);

}  // namespace kedge
