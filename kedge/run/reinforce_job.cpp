#include "kedge/run/reinforce_job.h"

namespace kedge {

std::unique_ptr<OnlineTrainer> ReinforceJob::make_trainer(OnlineParts parts, const OnlineSettings& settings) const {
  return std::make_unique<ReinforceTrainer>(std::move(parts), config_.trainer.reinforce, settings);
}

}  // namespace kedge
