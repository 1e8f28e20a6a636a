#pragma once
// Dynamic sampling (DAPO): prompts whose responses all have the same reward teach nothing, so they are left out, and further prompts take
// their places. Plain numbers on the host, the same on every rank.
#include <cstdint>
#include <map>

#include "kedge/rollout/rollout_row.h"

namespace kedge {

// Do the rewards of these responses to one prompt differ? Those that failed are not counted, nor, with `drops_unfinished`, those that were
// cut off: they are not trained on.
[[nodiscard]] bool has_spread(const RolloutRows& responses, bool drops_unfinished = false);

// Collects the responses of a step, batch after batch. Slots count on from batch to batch.
class GroupCollector {
 public:
  explicit GroupCollector(int64_t num_wanted, bool drops_unfinished = false)
      : num_wanted_(num_wanted), drops_unfinished_(drops_unfinished) {}

  // Those of another batch with their rewards; all responses to a prompt together.
  void add(RolloutRows rows);
  [[nodiscard]] bool is_full() const { return std::ssize(kept_) >= num_wanted_; }
  [[nodiscard]] int64_t num_kept() const { return std::ssize(kept_); }  // prompts that have a spread
  // The responses to as many prompts as are wanted, by slot: the first that have a spread. If they do not suffice, some without take the
  // places left over, the newest first, so that the largest slot always is one of the last batch.
  [[nodiscard]] RolloutRows take();

 private:
  using Groups = std::map<int64_t, RolloutRows>;  // by slot
  int64_t num_wanted_;
  bool drops_unfinished_;
  Groups kept_, dropped_;
};

// Prompts without a spread only fill a step: their responses do not train. `rows` has all responses to each of its prompts; those that
// do not train already have no part in the spread.
void leave_out_filling(RolloutRows& rows);

// How many batches of `batch_size` prompts a step's rows were taken from.
[[nodiscard]] int64_t num_batches_of(const RolloutRows& rows, int64_t batch_size);

}  // namespace kedge
