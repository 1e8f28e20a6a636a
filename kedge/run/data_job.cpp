#include "kedge/run/data_job.h"

#include <algorithm>

#include "kedge/algo/config_sections.h"

namespace kedge {

template <typename Config>
Section DataJob<Config>::section() {
  return describe(config_);
}

template <typename Config>
SupervisedSections DataJob<Config>::sections() const {
  return {.name = std::remove_cvref_t<decltype(config_.trainer.loop)>::kName,
          .model_key = "pretrained_checkpoint.restore_from_path",
          .model_path = config_.pretrained_checkpoint.restore_from_path,
          .compute = config_.trainer,
          .loop = config_.trainer.loop,
          .run = config_.exp_manager,
          .network = config_.model};
}

template <typename Config>
void DataJob<Config>::limit_length(int64_t max_positions) {
  config_.model.data.seq_length = std::min(config_.model.data.seq_length, max_positions);
}

template <typename Config>
SupervisedBatches DataJob<Config>::batches() const {
  const auto& model = config_.model;
  return {model.global_batch_size, model.micro_batch_size, config_.trainer.loop.train_random_sampler, static_cast<uint64_t>(model.seed),
          false};
}

template <typename Config>
std::vector<Path> DataJob<Config>::files() const {
  return data_files(config_.model.data, "model.data");
}

template class DataJob<RmConfig>;
template class DataJob<DpoConfig>;
template class DataJob<KtoConfig>;

}  // namespace kedge
