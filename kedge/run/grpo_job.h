#pragma once
// GRPO and RLOO as jobs: what kedge grpo and kedge rloo run.
#include "kedge/algo/config_sections.h"
#include "kedge/run/online_job.h"

namespace kedge {

using GrpoJob = ConfiguredOnlineJob<GrpoConfig>;
using RlooJob = ConfiguredOnlineJob<RlooConfig>;

}  // namespace kedge
