#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

#include "kedge/algo/critic_service.h"
#include "kedge/algo/serve_config.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/metrics/metrics_config.h"
#include "kedge/metrics/progress.h"
#include "kedge/model/model_files.h"
#include "kedge/model/model_folder.h"
#include "kedge/model/peft_files.h"
#include "kedge/model/weight_check.h"
#include "kedge/train/run_folder.h"
#include "kedge/train/run_record.h"

#include "cli/critic_memory.h"
#include "cli/run_session.h"
#include "cli/serve.h"

namespace kedge::cli {
namespace {

// Where a critic starts: the folder of a reward model, or, where nobody wants rewards, of any model.
struct CriticStart {
  Path folder;
  LoadOptions load;
  HeadOptions head;
  bool draws_head = false;  // neither the folder nor an adapter brings one
};

CriticStart find_start(const CriticServerConfig& config, const ModelConfig& network, const Path& folder, at::Device device) {
  CriticStart start{folder, {.storage = training_storage(config.trainer, config.model, device), .head = HeadKind::score}, {}};
  start.load.seed = static_cast<uint64_t>(config.model.seed);
  const WeightFiles files(folder);
  if (has_score_head(network, files)) {
    start.head = stored_head(network, files);
    return start;
  }
  check(!config.trainer.ppo.combine_rm_and_critic_server, "pretrained_checkpoint.restore_from_path: ", folder.string(),
        " holds no reward model (it has no score head), and trainer.ppo.combine_rm_and_critic_server=true wants its rewards; with false a "
        "critic starts from it with a new head");
  const PeftConfig& peft = config.model.peft;
  std::optional<HeadOptions> brought;
  if (peft.peft_scheme == PeftScheme::lora && peft.restore_from_path) brought = load_adapter_head(*peft.restore_from_path);
  start.head = brought.value_or(HeadOptions{HeadKind::score, 1, false});
  start.load.new_labels = start.head.num_labels;
  start.load.new_bias = start.head.score_bias;
  start.draws_head = !brought;
  return start;
}

// The critic as it is before its first update.
std::unique_ptr<CriticModel> start_critic(const CriticServerConfig& config, const CriticStart& start, ReferenceKind reward_model) {
  auto model = load_model(start.folder, start.load);
  add_trained_adapters(*model, config.model);
  CriticOptions options = critic_options(config);
  options.reward_model = reward_model;
  options.folder.save.companions = start.folder;
  options.folder.base = config.pretrained_checkpoint.restore_from_path;
  return std::make_unique<CriticModel>(std::move(model), std::move(options));
}

void write_papers(const CriticServerConfig& config, const Path& run_folder, const Arguments& arguments, const CriticStart& start) {
  CriticServerConfig shown = config;
  write_atomic(run_folder / "config.yaml", dump_config(describe(shown)));
  std::vector<std::string> words = {"kedge", "serve", "critic"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  add_run_record(run_folder, run_record({.command_line = words,
                                         .torch_version = TORCH_VERSION,
                                         .device = name_of(start.load.storage.device),
                                         .num_threads = at::get_num_threads(),
                                         .model_files = model_files(start.folder)}));
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
  static_cast<void>(critic_options(config));  // refuses what cannot be
  const CriticStart start = find_start(config, network, folder, mesh.device);
  const CriticMemory memory = plan_critic_memory(config, {.network = network,
                                                          .head = start.head,
                                                          .dtype = start.load.storage.dtype,
                                                          .is_cuda = mesh.device.is_cuda(),
                                                          .free = free_bytes(mesh.device),
                                                          .host_free = this_machine().available_bytes});
  require_fit(memory.verdict, "the critic");

  const Path run_folder = open_run_folder(config.exp_manager, time_as_version());
  const RunLock lock(run_folder);
  set_log_file((run_folder / "log.txt").string());
  if (start.draws_head)
    log_info(folder.string(), " has no score head: the critic starts with a new one, drawn with model.seed=", config.model.seed);
  MetricsLog log = make_metrics_log(config.exp_manager.metrics, run_folder, true);
  Critic critic({run_folder, [&] { return start_critic(config, start, memory.reward_model); }, log});
  write_papers(config, run_folder, arguments, start);  // not before: a start that is refused leaves those of the run as they are
  const ServedRows rows(folder, network, {max_length, ppo.add_bos, ppo.add_eos});
  log_info("critic of ", format_number(static_cast<double>(critic.model().model().trained().num_elements())), " trained parameters on ",
           name_of(mesh.device), ": ", critic.train_calls(), " training calls, ", critic.model().step(), " updates so far; folder ",
           run_folder.string());
  if (critic.model().gives_rewards()) log_info("the reward model it started from: ", memory.reward_model_text());
  log_info(format_bytes(memory.verdict.needed), " of memory needed at most, ", format_bytes(memory.verdict.free), " were free");
  return serve_until_told({ppo, make_critic_service({critic, rows, batches, max_length}), mesh.device, begin});
}

}  // namespace kedge::cli
