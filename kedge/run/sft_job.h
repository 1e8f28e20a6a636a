#pragma once
// Supervised fine-tuning as a job: what kedge sft runs.
#include "kedge/algo/supervised/sft.h"
#include "kedge/run/supervised_job.h"

namespace kedge {

class SftJob final : public SupervisedJob {
 public:
  [[nodiscard]] Section section() override;
  [[nodiscard]] SupervisedSections sections() const override;
  void limit_length(int64_t max_positions) override;
  [[nodiscard]] SupervisedBatches batches() const override;
  [[nodiscard]] HeadOptions head() const override { return {}; }
  [[nodiscard]] std::vector<Path> files() const override;
  [[nodiscard]] std::unique_ptr<Model> load(const Path& folder, const StorageOptions& storage) const override;
  [[nodiscard]] SupervisedTask make_task(const TaskModel& model) override;
  [[nodiscard]] int64_t cache_bytes(const ModelConfig& network, int64_t element_size, int64_t longest) const override;

 private:
  SftConfig config_;
};

}  // namespace kedge
