#pragma once
// REINFORCE as a job: what kedge reinforce runs.
#include "kedge/algo/config_sections.h"
#include "kedge/run/online_job.h"

namespace kedge {

using ReinforceJob = ConfiguredOnlineJob<ReinforceConfig>;

}  // namespace kedge
