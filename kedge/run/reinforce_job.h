#pragma once
// REINFORCE as a job: what kedge reinforce runs.
#include "kedge/algo/config_sections.h"
#include "kedge/run/online_job.h"

namespace kedge {

class ReinforceJob final : public ConfiguredOnlineJob<ReinforceConfig> {
 public:
  [[nodiscard]] std::unique_ptr<OnlineTrainer> make_trainer(OnlineParts parts, const OnlineSettings& settings) const override;
};

}  // namespace kedge
