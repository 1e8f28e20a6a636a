#pragma once
// An update of the policy that is looked at on its way, for the invariants of a run. Knows no settings and no rewards.
#include "kedge/algo/online/invariants.h"
#include "kedge/algo/online/policy.h"

namespace kedge {

// policy.update_and_record(step, rows) where it `observes`, else policy.update(step, rows). Into `seen`: sampled and weighted tokens, the
// mean distance of its log-probs from those that the rows have, and whether it learned and changed the weights. Every rank calls it.
Metrics watched_update(Policy& policy, const Group& group, UpdateStep step, RolloutRows& rows, bool observes, StepEvidence& seen);

}  // namespace kedge
