#pragma once
// The loop of every trainer: steps, validation, saving, the time limit, signals and progress. Independent of algorithms.
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kedge/core/stop.h"
#include "kedge/dist/group.h"
#include "kedge/metrics/metrics.h"
#include "kedge/train/checkpoint/background_saver.h"
#include "kedge/train/checkpoint/model_state.h"
#include "kedge/train/checkpoint/state_files.h"
#include "kedge/train/step_plan.h"

namespace kedge {

using Counters = std::map<std::string, int64_t>;

// Something is wrong with a run although every number can be computed. The same on every rank.
struct Alarm {
  std::string what;   // "kl run-away: ..."
  bool save = false;  // keep the run as it is now
  bool stop = false;  // and end it, with exit code 1
};

// The metrics of a step or a validation. Names are complete: "train/loss".
struct StepReport {
  Metrics metrics = {};
  std::vector<Metrics> updates = {};  // one for each update of a step that makes several; written before the others
  std::vector<SampleTable> samples = {};
  std::optional<Alarm> alarm = {};
};

// The loop's interface to an algorithm. Every rank calls everything, in the same order.
class Trainer {
 public:
  virtual ~Trainer() = default;

  [[nodiscard]] virtual StepReport train_step() = 0;
  [[nodiscard]] virtual StepReport validate() = 0;

  // Before the first step: one micro-batch of the largest size through every phase, so that a lack of memory shows at once.
  // Nothing that a step depends on changes.
  virtual void rehearse() {}
  // The phase that an exception ended, as kedge plan calls it; empty: not known.
  [[nodiscard]] virtual std::string failed_phase() const { return ""; }

  // After the last step of a run, before its last checkpoint is waited for: background work is finished when this returns.
  virtual void finish() {}

  // What it has counted besides the steps: consumed_samples, ...
  [[nodiscard]] virtual Counters counters() const = 0;

  // Everything the next step depends on goes into `state`: what load() reads, on any number of ranks, continues as if nothing had happened.
  // The result writes this rank's part of the model's folder, if it has one, on another thread, as the model was, when the state is
  // written. If the state is not a copy, the trainer is not used meanwhile.
  [[nodiscard]] virtual FolderWriter save(StateSnapshot& state) const = 0;
  // Called before a save(): the checkpoints of these steps are on disk, the newest last. A run that died now would resume from that one,
  // or from one before it if it is damaged.
  virtual void note_saved(const std::vector<int64_t>& /*steps*/) {}
  virtual void load(const StateFiles& state) = 0;
};

struct LoopOptions {
  std::string title = "Training steps";  // of the progress bar
  StepPlan steps;
  Intervals intervals;
  std::optional<std::chrono::seconds> time_limit;
  bool rehearses = false;    // before the first step
  bool saves_block = false;  // training waits while a checkpoint is written, without a copy
  Json record;               // kept in every checkpoint
  Path folder = {};          // the run's, in which ranks write their parts of a checkpoint; only for several ranks
};

struct LoopResult {
  int64_t step = 0;
  std::string reason;  // "complete", "time limit", "SIGTERM", or an alarm's text
  int exit_code = 0;
  Metrics last;                 // the newest value of every metric
  double first_step_s = 0;      // until the first step was done, from `begin`
  double seconds_training = 0;  // in steps
};

struct LoopParts {
  Trainer& trainer;
  Group group;
  MetricsLog& log;
  BackgroundSaver* saver;  // null: nothing is saved; only rank 0's is used
  const StopSignals& signals;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();  // of the run, for its time limit
};

// Runs from `step` on to the last step, the time limit, a signal or an alarm that stops. A checkpoint that could not be written is an
// Error, at the end.
[[nodiscard]] LoopResult run_loop(const LoopParts& parts, const LoopOptions& options, int64_t step);

// Restores the trainer and the log to the checkpoint. Returns its step.
int64_t restore(Trainer& trainer, MetricsLog& log, const Checkpoint& checkpoint);
// The trainer only, for a run that starts there with its own log.
int64_t restore(Trainer& trainer, const Checkpoint& checkpoint);

// The position of a run that resumes from the checkpoint.
[[nodiscard]] Position position_of(const Checkpoint& checkpoint);

// Metrics for ranking checkpoints: "validation/loss" is val_loss, "train_rollouts/rewards" is train_rewards, a timer has its bare
// name.
[[nodiscard]] std::map<std::string, double> monitors_of(const Metrics& metrics);

}  // namespace kedge
