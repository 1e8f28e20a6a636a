#pragma once
// What supervised jobs whose rows come from one `model.data` section have in common: reward models, DPO and KTO.
#include "kedge/run/supervised_job.h"

namespace kedge {

// `Config`: RmConfig, DpoConfig or KtoConfig.
template <typename Config>
class DataJob : public SupervisedJob {
 public:
  [[nodiscard]] Section section() override;
  [[nodiscard]] SupervisedSections sections() const override;
  void limit_length(int64_t max_positions) override;
  [[nodiscard]] SupervisedBatches batches() const override;
  [[nodiscard]] std::vector<Path> files() const override;

 protected:
  Config config_;
};

}  // namespace kedge
