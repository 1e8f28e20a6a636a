#pragma once
// Training of a reward model as a job: what kedge rm runs.
#include "kedge/algo/supervised/rm.h"
#include "kedge/run/data_job.h"

namespace kedge {

class RmJob final : public DataJob<RmConfig> {
 public:
  void check_config() const override;
  [[nodiscard]] HeadOptions head() const override;
  [[nodiscard]] std::unique_ptr<Model> load(const Path& folder, const StorageOptions& storage) const override;
  [[nodiscard]] SupervisedTask make_task(const TaskModel& model) override;
  void add_summary(Json& summary, const Metrics& metrics) const override;
};

}  // namespace kedge
