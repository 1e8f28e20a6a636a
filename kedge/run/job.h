#pragma once
// A training run as an object, from its settings to a finished run folder: what kedge sft, rm, dpo, kto, ppo, reinforce and rs run, and
// what your own program can run. Independent of command lines.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kedge/config/config.h"
#include "kedge/run/plan_report.h"

namespace kedge {

struct RunOptions {
  std::optional<Path> fork = {};            // starts a new run from this checkpoint of another
  std::vector<std::string> arguments = {};  // of the program, as run.json records them
};

// The settings are loaded first: load_config(job.section(), file, overrides). Invalid ones are a UsageError. Not thread-safe.
class Job {
 public:
  Job() = default;
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // All its settings. Valid as long as the job.
  [[nodiscard]] virtual Section section() = 0;

  // Runs to the end, or until a signal or the time limit ends it. Resumes from the newest valid checkpoint of its folder, which it locks.
  // Returns the exit code of a program: 0 for a finished run.
  virtual int run(const RunOptions& options) = 0;
  // What a run would take, without reading weights.
  [[nodiscard]] virtual PlanReport plan(const PlanOptions& options) = 0;
};

// By the name of its command: "reinforce". Null if no job has that name.
[[nodiscard]] std::unique_ptr<Job> make_job(std::string_view name);

}  // namespace kedge
