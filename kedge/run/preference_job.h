#pragma once
// Training on preferences without rollouts as jobs: what kedge dpo and kedge kto run.
#include "kedge/algo/supervised/preference_config.h"
#include "kedge/run/data_job.h"

namespace kedge {

// `Config`: DpoConfig or KtoConfig.
template <typename Config>
class PreferenceJob final : public DataJob<Config> {
 public:
  void check_config() const override;
  [[nodiscard]] HeadOptions head() const override { return {}; }
  [[nodiscard]] std::unique_ptr<Model> load(const Path& folder, const StorageOptions& storage) const override;
  [[nodiscard]] SupervisedTask make_task(const TaskModel& model) override;
  [[nodiscard]] ReferenceUse reference_use() const override;

 private:
  using DataJob<Config>::config_;
};
using DpoJob = PreferenceJob<DpoConfig>;
using KtoJob = PreferenceJob<KtoConfig>;
extern template class PreferenceJob<DpoConfig>;
extern template class PreferenceJob<KtoConfig>;

}  // namespace kedge
