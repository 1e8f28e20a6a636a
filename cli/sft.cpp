#include "kedge/algo/config_sections.h"
#include "kedge/algo/sft_samples.h"
#include "kedge/core/error.h"
#include "kedge/data/data_prefix.h"
#include "kedge/model/model_files.h"

#include "cli/commands.h"
#include "cli/run_session.h"
#include "cli/training_job.h"

namespace kedge::cli {
namespace {

std::vector<Path> files_of(const SftDataConfig& data) {
  std::vector<Path> files;
  for (const Json& value : {data.train_ds.file_path, data.validation_ds.file_path})
    if (!value.is_null())
      for (const WeightedFile& file : parse_files(value, "model.data")) files.push_back(file.path);
  return files;
}

// Runs `use` with the job of this command.
void with_job(const std::function<void(const TrainingJob& job)>& use) {
  SftConfig config;
  SftModelConfig& model = config.model;
  const TrainingJob job{
      .name = "sft",
      .section = describe(config),
      .model_key = "model.restore_from_path",
      .model_path = model.restore_from_path,
      .compute = config.trainer,
      .loop = config.trainer.sft,
      .run = config.exp_manager,
      .network = model,
      .check_config = {},
      .limit_length =
          [&](int64_t longest) {
            for (SftFilesConfig* files : {&model.data.train_ds, &model.data.validation_ds})
              if (!files->packed_sequence) files->max_seq_length = std::min(files->max_seq_length, longest);
            model.encoder_seq_length = std::min(model.encoder_seq_length, longest);  // of a sequence in a pack
          },
      .batches =
          [&] {
            const SftFilesConfig& files = model.data.train_ds;
            return SupervisedBatches{files.global_batch_size, files.micro_batch_size, files.shuffle, static_cast<uint64_t>(model.seed),
                                     model.data.sample};
          },
      .head = [] { return HeadOptions{}; },
      .data_files = [&] { return files_of(model.data); },
      .load_model = [](const Path& folder,
                       const StorageOptions& storage) { return load_model(folder, {.storage = storage, .head = HeadKind::language}); },
      .make_task = [&](const std::unique_ptr<Model>& network, const Tokenizer& tokenizer,
                       const Path& folder) { return make_sft_task(model, network, tokenizer, folder); },
      .cache_bytes =
          [&](const ModelConfig& network, int64_t element_size, int64_t longest) {
            const int64_t tokens = model.num_samples * (longest + model.sample_tokens);
            return tokens == 0 ? 0 : sample_cache_bytes(network, element_size, tokens);
          },
      .add_summary = {}};
  use(job);
}

}  // namespace

std::string sft_flags() { return training_flags("sft"); }

int run_sft(const Arguments& arguments) {
  int code = kExitOk;
  with_job([&](const TrainingJob& job) { code = run_training(job, arguments); });
  return code;
}

PlanReport plan_sft(const PlanArguments& arguments) {
  PlanReport report;
  with_job([&](const TrainingJob& job) { report = plan_training(job, arguments); });
  return report;
}

}  // namespace kedge::cli
