#pragma once
// Rejection sampling as a job: what kedge rs runs.
#include "kedge/algo/config_sections.h"
#include "kedge/run/online_job.h"

namespace kedge {

using RsJob = ConfiguredOnlineJob<RsConfig>;

}  // namespace kedge
