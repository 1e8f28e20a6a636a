#pragma once
// An update of the policy that is observed for the invariants of a run. Independent of settings and rewards.
#include "kedge/algo/online/invariants.h"
#include "kedge/algo/online/policy.h"

namespace kedge {

// policy.update_and_record(step, rows) if it `observes`, else policy.update(step, rows). Into `seen`: sampled and weighted tokens, the
// mean distance of its log-probs from those that the rows have, and whether it learned and changed the weights. Every rank calls it.
Metrics watched_update(Policy& policy, const Group& group, UpdateStep step, RolloutRows& rows, bool observes, StepEvidence& seen);

}  // namespace kedge
