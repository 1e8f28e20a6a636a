#pragma once
// Training on preferences without rollouts as jobs: what kedge dpo and kedge kto run.
#include "kedge/algo/supervised/preference_config.h"
#include "kedge/run/supervised_job.h"

namespace kedge {

// `Config`: DpoConfig or KtoConfig.
template <typename Config>
class PreferenceJob final : public SupervisedJob {
 public:
  [[nodiscard]] Section section() override;
  [[nodiscard]] SupervisedSections sections() const override;
  void check_config() const override;
  void limit_length(int64_t max_positions) override;
  [[nodiscard]] SupervisedBatches batches() const override;
  [[nodiscard]] HeadOptions head() const override { return {}; }
  [[nodiscard]] std::vector<Path> files() const override;
  [[nodiscard]] std::unique_ptr<Model> load(const Path& folder, const StorageOptions& storage) const override;
  [[nodiscard]] SupervisedTask make_task(const std::unique_ptr<Model>& model, const Tokenizer& tokenizer, const Path& folder) override;
  [[nodiscard]] ReferenceUse reference_use() const override;

 private:
  Config config_;
};
using DpoJob = PreferenceJob<DpoConfig>;
using KtoJob = PreferenceJob<KtoConfig>;
extern template class PreferenceJob<DpoConfig>;
extern template class PreferenceJob<KtoConfig>;

}  // namespace kedge
