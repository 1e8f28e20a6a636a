#pragma once
// Weights in training: their optimizer, how gradients become an update, the schedule of the learning rate, and the number of updates that
// it depends on. A checkpoint has them all. Independent of losses.
#include <cstdint>
#include <string>

#include "kedge/dist/group.h"
#include "kedge/train/optim/optim_config.h"
#include "kedge/train/optim/optimizer.h"
#include "kedge/train/optim/schedule.h"
#include "kedge/train/optim/updater.h"

namespace kedge {

struct LearnerOptions {
  OptimConfig optim = {};
  UpdateConfig update = {};
  int64_t horizon = 0;  // of the learning rate, in updates
  std::string counter;  // the checkpoint's name for the number of updates
};

struct LearnerUpdate {
  int64_t index = 0;  // updates before it
  double lr = 0;
  double grad_norm = 0;     // before clipping
  int64_t num_skipped = 0;  // skipped updates so far, including this one
};

// Not thread-safe. Every rank makes the same calls. `weights` must outlive it.
class Learner {
 public:
  Learner(const LearnerOptions& options, Parameters& weights, const Group& group = Group::single());
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  void zero_gradients() { optimizer_.zero_gradients(); }
  // How many passes an update has of which this rank has `own`, before the first of them: ranks that sum gradients after every pass make
  // the same number, some without rows (Model::complete_pass).
  [[nodiscard]] int64_t num_passes(int64_t own) const;
  // One update from the gradients of all ranks, as Updater has it. `learns` false: it is counted, but weights and moments do not change.
  LearnerUpdate update(bool learns = true);

  [[nodiscard]] int64_t num_updates() const { return num_updates_; }
  [[nodiscard]] double next_rate() const { return schedule_.rate(num_updates_); }
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }

  void save(StateSnapshot& state) const;
  void load(const StateFiles& state);

 private:
  std::string counter_;
  Group group_;
  Optimizer optimizer_;
  Updater updater_;
  Schedule schedule_;
  int64_t num_updates_ = 0;
};

}  // namespace kedge
