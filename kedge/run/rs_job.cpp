#include "kedge/run/rs_job.h"

namespace kedge {

std::unique_ptr<OnlineTrainer> RsJob::make_trainer(OnlineParts parts, const OnlineSettings& settings) const {
  return std::make_unique<RSTrainer>(std::move(parts), settings);
}

}  // namespace kedge
