#include "kedge/train/optim/learner.h"

#include <array>
#include <span>

#include "kedge/core/error.h"

namespace kedge {

Learner::Learner(const LearnerOptions& options, Parameters& weights, const Group& group)
    : counter_(options.counter),
      group_(group),
      optimizer_(options.optim, weights),
      updater_(options.update, optimizer_, weights),
      schedule_(options.optim.sched, options.optim.lr, options.horizon, "model.optim.sched") {
  ensure(weights.options().shards.num_ranks() == group.size(), "weights of ", weights.options().shards.num_ranks(),
         " ranks are trained by ", group.size());
}

int64_t Learner::num_passes(int64_t own) const {
  std::array<double, 1> largest = {static_cast<double>(own)};
  group_.all_reduce(std::span<double>(largest), Reduce::max);
  return static_cast<int64_t>(largest[0]);
}

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
