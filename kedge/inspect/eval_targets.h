#pragma once
// What kedge eval is to look at: runs, checkpoints and model folders, as the policies they stand for, in the order in which they are
// evaluated. Reads folders, no weights.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/files.h"
#include "kedge/inspect/run_on_disk.h"

namespace kedge {

enum class PolicyKind {
  start,       // what a run of kedge reinforce, rs or ppo began with
  checkpoint,  // of such a run
  model,       // a folder with a model, or with adapters for one
};

struct EvalTarget {
  PolicyKind kind = PolicyKind::model;
  Path folder = {};  // absolute: of the run, of the checkpoint, of the model
  Path base = {};    // of a model: the same folder, or the one that the adapters in it stand on
  std::shared_ptr<const RunOnDisk> run = nullptr;
  std::optional<int64_t> step = {};  // of a run; 0: its start
  std::string name = {};             // as a table has it: "10", "runs/a 10", "models/base"
};

// Which of a run's checkpoints. Its start always comes along.
struct StepChoice {
  std::vector<int64_t> steps = {};  // empty: all
  int64_t every = 0;                // those that it divides; 0: all
};

// "10,20"; `flag` opens the error.
[[nodiscard]] std::vector<int64_t> parse_whole_numbers(const std::string& text, const std::string& flag);

// Every run's start comes before its checkpoints, these by step; folders come as they were given. A checkpoint that is named finds its run,
// and so does a model inside a run's folder. UsageError for what is none of these, for a step that is not there, and for a run without a
// policy. `choice` holds for whole runs.
[[nodiscard]] std::vector<EvalTarget> find_targets(const std::vector<std::string>& given, const StepChoice& choice);

// The run that a folder lies in: itself, or up to three folders above it.
[[nodiscard]] std::optional<Path> run_around(const Path& folder);

// The folder of the model: itself, or that which the adapters in it stand on. A relative one is looked for from `from`.
[[nodiscard]] Path base_of(const Path& folder, const Path& from);
[[nodiscard]] bool has_adapters(const Path& folder);

}  // namespace kedge
