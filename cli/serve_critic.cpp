#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

#include "kedge/algo/critic_service.h"
#include "kedge/algo/serve_config.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/metrics/metrics_config.h"
#include "kedge/metrics/progress.h"
#include "kedge/model/model_files.h"
#include "kedge/model/model_folder.h"
#include "kedge/train/run_folder.h"
#include "kedge/train/run_record.h"

#include "cli/serve.h"

namespace kedge::cli {
namespace {

// The critic as it is before its first update: the reward model's weights.
std::unique_ptr<CriticModel> start_critic(const CriticServerConfig& config, const Path& folder, const Mesh& mesh) {
  const bool trains_all = config.model.peft.peft_scheme == PeftScheme::none;
  auto model = load_model(folder, {.storage = {dtype_of(config.trainer, mesh.device), mesh.device, trains_all}, .head = HeadKind::score});
  add_trained_adapters(*model, config.model);
  CriticOptions options = critic_options(config);
  options.folder.save.companions = folder;
  options.folder.base = config.pretrained_checkpoint.restore_from_path;
  return std::make_unique<CriticModel>(std::move(model), std::move(options));
}

void write_papers(const CriticServerConfig& config, const Path& run_folder, const Arguments& arguments, const Mesh& mesh) {
  CriticServerConfig shown = config;
  write_atomic(run_folder / "config.yaml", dump_config(describe(shown)));
  std::vector<std::string> words = {"kedge", "serve", "critic"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  add_run_record(
      run_folder,
      run_record(
          {.command_line = words, .torch_version = TORCH_VERSION, .device = name_of(mesh.device), .num_threads = at::get_num_threads()}));
}

}  // namespace

int serve_critic(const Arguments& arguments) {
  CriticServerConfig config;
  const ConfigArguments given = read_config_arguments(arguments);
  load_config(describe(config), given.file, given.overrides);
  const auto begin = std::chrono::steady_clock::now();
  const CriticServerConfig::Ppo& ppo = config.trainer.ppo;
  check_address(ppo);
  const ServedBatches batches{preferred_batch_sizes(ppo.inference_micro_batch_size, "trainer.ppo.inference_micro_batch_size"),
                              ppo.max_queue_delay_microseconds};
  const Mesh mesh = open_server_mesh(config.trainer);
  const Path folder = find_model_folder(config.pretrained_checkpoint.restore_from_path, "pretrained_checkpoint.restore_from_path");
  const ModelConfig network = load_model_config(folder);
  const int64_t max_length = std::min(config.model.encoder_seq_length, network.max_positions);
  const RewardScorerOptions options = scorer_options(config.model);

  const Path run_folder = open_run_folder(config.exp_manager, time_as_version());
  const RunLock lock(run_folder);
  set_log_file((run_folder / "log.txt").string());
  write_papers(config, run_folder, arguments, mesh);
  MetricsLog log = make_metrics_log(config.exp_manager.metrics, run_folder, true);
  Critic critic({run_folder, [&] { return start_critic(config, folder, mesh); }, log});
  std::unique_ptr<Model> rewards;
  std::optional<RewardScorer> scorer;
  if (ppo.combine_rm_and_critic_server) {
    rewards = load_model(folder, {.storage = {dtype_of(config.trainer, mesh.device), mesh.device, false}, .head = HeadKind::score});
    scorer.emplace(*rewards, options);
  }
  const ServedRows rows(folder, network, {max_length, ppo.add_bos, ppo.add_eos});
  log_info("critic of ", format_number(static_cast<double>(critic.model().model().trained().num_elements())), " trained parameters on ",
           name_of(mesh.device), scorer ? ", with the reward model it started from" : "", ": ", critic.train_calls(), " training calls, ",
           critic.model().step(), " updates so far; folder ", run_folder.string());
  return serve_until_told({ppo, make_critic_service({critic, rows, scorer ? &*scorer : nullptr, batches, max_length}), mesh.device, begin});
}

}  // namespace kedge::cli
