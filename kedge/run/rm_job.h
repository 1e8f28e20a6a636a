#pragma once
// Training of a reward model as a job: what kedge rm runs.
#include "kedge/algo/supervised/rm.h"
#include "kedge/run/supervised_job.h"

namespace kedge {

class RmJob final : public SupervisedJob {
 public:
  [[nodiscard]] Section section() override;
  [[nodiscard]] SupervisedSections sections() const override;
  void check_config() const override;
  void limit_length(int64_t max_positions) override;
  [[nodiscard]] SupervisedBatches batches() const override;
  [[nodiscard]] HeadOptions head() const override;
  [[nodiscard]] std::vector<Path> files() const override;
  [[nodiscard]] std::unique_ptr<Model> load(const Path& folder, const StorageOptions& storage) const override;
  [[nodiscard]] SupervisedTask make_task(const std::unique_ptr<Model>& model, const Tokenizer& tokenizer, const Path& folder) override;
  void add_summary(Json& summary, const Metrics& last) const override;

 private:
  RmConfig config_;
};

}  // namespace kedge
