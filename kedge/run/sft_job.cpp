#include "kedge/run/sft_job.h"

#include <algorithm>

#include "kedge/algo/config_sections.h"
#include "kedge/algo/supervised/sft_samples.h"
#include "kedge/data/files/data_prefix.h"
#include "kedge/model/files/model_files.h"

namespace kedge {

Section SftJob::section() { return describe(config_); }

SupervisedSections SftJob::sections() const {
  return {.name = "sft",
          .model_key = "model.restore_from_path",
          .model_path = config_.model.restore_from_path,
          .compute = config_.trainer,
          .loop = config_.trainer.loop,
          .run = config_.exp_manager,
          .network = config_.model};
}

void SftJob::limit_length(int64_t max_positions) {
  SftModelConfig& model = config_.model;
  for (SftFilesConfig* files : {&model.data.train_ds, &model.data.validation_ds})
    if (!files->packed_sequence) files->max_seq_length = std::min(files->max_seq_length, max_positions);
  model.encoder_seq_length = std::min(model.encoder_seq_length, max_positions);  // of a sequence in a pack
}

SupervisedBatches SftJob::batches() const {
  const SftModelConfig& model = config_.model;
  const SftFilesConfig& files = model.data.train_ds;
  return {files.global_batch_size, files.micro_batch_size, files.shuffle, static_cast<uint64_t>(model.seed), model.data.sample};
}

std::vector<Path> SftJob::files() const {
  const SftDataConfig& data = config_.model.data;
  std::vector<Path> files;
  for (const Json& value : {data.train_ds.file_path, data.validation_ds.file_path})
    if (!value.is_null())
      for (const WeightedFile& file : parse_files(value, "model.data")) files.push_back(file.path);
  return files;
}

std::unique_ptr<Model> SftJob::load(const Path& folder, const StorageOptions& storage) const {
  return load_model(folder, {.storage = storage, .head = HeadKind::language});
}

SupervisedTask SftJob::make_task(const TaskModel& model) { return make_sft_task(config_.model, model); }

int64_t SftJob::cache_bytes(const ModelConfig& network, int64_t element_size, int64_t longest) const {
  const int64_t tokens = config_.model.num_samples * (longest + config_.model.sample_tokens);
  return tokens == 0 ? 0 : sample_cache_bytes(network, element_size, tokens);
}

}  // namespace kedge
