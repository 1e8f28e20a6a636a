#include "kedge/train/optim/learner.h"

namespace kedge {

Learner::Learner(const LearnerOptions& options, Parameters& weights, const Group& group)
    : counter_(options.counter),
      optimizer_(options.optim, weights, group),
      updater_(options.update, optimizer_, weights, group),
      schedule_(options.optim.sched, options.optim.lr, options.horizon, "model.optim.sched") {}

LearnerUpdate Learner::update(bool learns) {
  const double lr = next_rate();
  const UpdateResult result = learns ? updater_.apply(lr) : UpdateResult();
  return {.index = num_updates_++, .lr = lr, .grad_norm = result.grad_norm, .num_skipped = updater_.num_skipped()};
}

void Learner::save(StateSnapshot& state) const {
  optimizer_.save(state);
  updater_.save(state);
  state.set(counter_, num_updates_);
}

void Learner::load(const StateFiles& state) {
  optimizer_.load(state);
  updater_.load(state);
  num_updates_ = state.at(counter_).as_integer(counter_);
}

}  // namespace kedge
