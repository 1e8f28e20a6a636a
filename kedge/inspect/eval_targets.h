#pragma once
// What kedge eval evaluates: runs, checkpoints and model folders, as policies, in the order in which they are
// evaluated. Reads folders, no weights.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/inspect/run_on_disk.h"

namespace kedge {

enum class PolicyKind {
  start,       // what a run of kedge reinforce, rs or ppo started from
  checkpoint,  // of such a run
  model,       // a folder with a model, or with adapters for one
};

struct EvalTarget {
  PolicyKind kind = PolicyKind::model;
  Path folder = {};  // absolute: of the run, of the checkpoint, of the model
  Path base = {};    // of a model: the same folder, or the base model of its adapters
  std::shared_ptr<const RunOnDisk> run = nullptr;
  std::optional<int64_t> step = {};  // of a run; 0: its start
  std::string name = {};             // as a table has it: "10", "runs/a 10", "models/base"
};

// Which of a run's checkpoints. Its start is always included.
struct StepChoice {
  std::vector<int64_t> steps = {};  // empty: all
  int64_t every = 0;                // those that it divides; 0: all
};

// "10,20"; `flag` opens the error.
[[nodiscard]] std::vector<int64_t> parse_whole_numbers(const std::string& text, const std::string& flag);

// Every run's start comes before its checkpoints, these by step; folders come as they were given. A checkpoint that is named finds its run,
// and so does a model inside a run's folder. UsageError for anything else, for a missing step, and for a run without a
// policy. `choice` applies to runs.
[[nodiscard]] std::vector<EvalTarget> find_targets(const std::vector<std::string>& given, const StepChoice& choice);

// The run that contains a folder: itself, or up to three folders above it.
[[nodiscard]] std::optional<Path> run_around(const Path& folder);

// The folder of the model: itself, or the base model of its adapters. A relative one is resolved from `from`.
[[nodiscard]] Path base_of(const Path& folder, const Path& from);
[[nodiscard]] bool has_adapters(const Path& folder);

}  // namespace kedge
