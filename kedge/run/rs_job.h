#pragma once
// Rejection sampling as a job: what kedge rs runs.
#include "kedge/algo/config_sections.h"
#include "kedge/run/online_job.h"

namespace kedge {

class RsJob final : public ConfiguredOnlineJob<RsConfig> {
 public:
  [[nodiscard]] std::unique_ptr<OnlineTrainer> make_trainer(OnlineParts parts, const OnlineSettings& settings) const override;
};

}  // namespace kedge
