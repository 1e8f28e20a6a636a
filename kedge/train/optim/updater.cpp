#include "kedge/train/optim/updater.h"

#include <cmath>

#include "kedge/core/error.h"
#include "kedge/core/log.h"

namespace kedge {

Updater::Updater(const UpdateConfig& config, Optimizer& optimizer, Parameters& parameters)
    : config_(config), optimizer_(optimizer), parameters_(parameters) {}

UpdateResult Updater::apply(double lr) {
  ensure(std::isfinite(lr) && lr >= 0, "a learning rate of ", lr);
  parameters_.finish_gradients();
  UpdateResult result{optimizer_.gradient_norm(), false};  // the same bits on every rank, so all decide equally
  if (std::isfinite(result.grad_norm)) {
    optimizer_.step(lr, clip_coefficient(result.grad_norm, config_.gradient_clip_val.value_or(0)));
    num_in_a_row_ = 0;
    return result;
  }
  result.skipped = true;
  ++num_skipped_;
  ++num_in_a_row_;
  log_warn_of_job("an update is skipped: its gradients are not finite; ", num_skipped_, " so far");
  if (num_in_a_row_ > config_.max_skipped_updates)
    throw Error(
        str(num_in_a_row_, " updates in a row had gradients that are not finite; a smaller learning rate may help, or check the data"));
  return result;
}

void Updater::save(StateSnapshot& snapshot) const {
  snapshot.set("updater.skipped", num_skipped_);
  snapshot.set("updater.skipped_in_a_row", num_in_a_row_);
}

void Updater::load(const StateFiles& files) {
  num_skipped_ = files.at("updater.skipped").as_integer("updater.skipped");
  num_in_a_row_ = files.at("updater.skipped_in_a_row").as_integer("updater.skipped_in_a_row");
}

}  // namespace kedge
