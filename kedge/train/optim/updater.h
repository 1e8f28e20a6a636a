#pragma once
// One update from the gradients of all ranks: summed, measured, clipped, applied; skipped if they are not finite.
#include <cstdint>
#include <optional>

#include "kedge/config/config_schema.h"
#include "kedge/train/optim/optimizer.h"

namespace kedge {

struct UpdateConfig {
  std::optional<double> gradient_clip_val = 1.0;
  int64_t max_skipped_updates = 10;

  void fields(auto&& field) {
    field("gradient_clip_val", gradient_clip_val, "maximum norm of the gradients; null, 0 or less: no clipping");
    field("max_skipped_updates", max_skipped_updates,
          "consecutive updates that may be skipped because gradients are not finite; one more ends the run", at_least(0));
  }
};

struct UpdateResult {
  double grad_norm = 0;  // before clipping
  bool skipped = false;
};

// Not thread-safe. `parameters` are those of `optimizer`; both must outlive it.
class Updater {
 public:
  Updater(const UpdateConfig& config, Optimizer& optimizer, Parameters& parameters);

  // Every rank calls it when its backward passes are done. The gradients of all ranks are summed, so each rank's loss must have been
  // divided by the number of micro-batches of all of them. An Error after too many skipped ones.
  UpdateResult apply(double lr);

  [[nodiscard]] int64_t num_skipped() const { return num_skipped_; }

  void save(StateSnapshot& snapshot) const;
  void load(const StateFiles& files);

 private:
  UpdateConfig config_;
  Optimizer& optimizer_;
  Parameters& parameters_;
  int64_t num_skipped_ = 0, num_in_a_row_ = 0;
};

}  // namespace kedge
