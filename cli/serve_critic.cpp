#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

#include "kedge/algo/config_sections.h"
#include "kedge/core/device.h"
#include "kedge/core/error.h"
#include "kedge/core/log.h"
#include "kedge/core/machine.h"
#include "kedge/critic/critic_fork.h"
#include "kedge/critic/critic_service.h"
#include "kedge/metrics/metrics_config.h"
#include "kedge/metrics/progress.h"
#include "kedge/run/critic_start.h"
#include "kedge/run/run_session.h"
#include "kedge/train/checkpoint/run_folder.h"
#include "kedge/train/checkpoint/run_record.h"

#include "cli/plan.h"
#include "cli/serve.h"

namespace kedge::cli {
namespace {

void write_papers(const CriticServerConfig& config, const Path& run_folder, const Arguments& arguments, const CriticStart& start,
                  const Model& model) {
  CriticServerConfig shown = config;
  write_atomic(run_folder / "config.yaml", dump_config(describe(shown)));
  std::vector<std::string> words = {"kedge", "serve", "critic"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  add_run_record(run_folder, run_record({.command_line = words,
                                         .torch_version = TORCH_VERSION,
                                         .device = name_of(start.load.storage.device),
                                         .num_threads = at::get_num_threads(),
                                         .model_files = recorded_model_files(start.folder),
                                         .num_trained_parameters = model.trained().num_elements(),
                                         .dtype = std::string(name_of(model.parameters().options().dtype))}));
}

}  // namespace

PlanReport plan_serve_critic(const Arguments& arguments, const PlanOptions& options) {
  CriticServerConfig config;
  const ConfigArguments given = read_config_arguments(arguments);
  load_config(describe(config), given.file, given.overrides);
  const Mesh mesh = open_plan_mesh(config.trainer, options.ranks);
  const CriticStart start = find_critic_start(config, mesh);
  const MemoryFit& verdict = start.memory.verdict;
  PlanReport report;
  report.needed = verdict.needed;
  report.fits = verdict.fits && verdict.needed + options.beside <= verdict.free;
  report.text = plan_heading("serve critic", start.folder, start.load.storage.dtype, mesh) + memory_text(verdict, {});
  if (config.trainer.ppo.combine_rm_and_critic_server)
    report.text += str("the reward model it starts from: ", start.memory.reward_model_text(), "\n");
  report.json.set("server", "critic");
  add_verdict(report.json, verdict);
  return report;
}

int serve_critic(const Arguments& arguments) {
  name_rank_in_log();
  CriticServerConfig config;
  const ConfigArguments given = read_config_arguments(arguments);
  load_config(describe(config), given.file, given.overrides);
  const auto begin = std::chrono::steady_clock::now();
  const CriticServerConfig::Ppo& ppo = config.trainer.ppo;
  const ServedBatches batches{preferred_batch_sizes(ppo.inference_micro_batch_size, "trainer.ppo.inference_micro_batch_size"),
                              ppo.max_queue_delay_microseconds};
  const Mesh mesh = open_mesh(config.trainer);
  const bool speaks = mesh.world.rank() == 0;
  if (speaks) check_server_address(ppo, "trainer.ppo");
  if (speaks) check_trackers(config.exp_manager.metrics);
  const CriticStart start = find_critic_start(config, mesh);
  const auto start_model = [&] { return start_critic(config, start); };
  const int64_t max_length = std::min(config.model.encoder_seq_length, start.network.max_positions);
  require_fit(start.memory.verdict, "the critic");

  std::string shared = speaks ? open_run_folder(config.exp_manager, time_as_version()).string() : "";
  mesh.world.broadcast(shared, 0);
  const Path run_folder = shared;
  CriticRanks ranks(mesh.world, start.group, run_folder);
  if (!speaks) return follow_until_told([&] { ranks.follow(start_model); });
  const ScratchFolder scratch(config.exp_manager, run_folder);
  const RunLock lock(run_folder);
  set_log_file((run_folder / "log.txt").string());
  check_resume(config.exp_manager, run_folder);
  if (const auto& other = config.exp_manager.resume_from_checkpoint)
    fork_critic(*other, run_folder, {.what = "exp_manager.resume_from_checkpoint=" + *other});
  MetricsLog log = make_metrics_log(config.exp_manager.metrics, run_folder, true);
  const bool has_others = mesh.world.size() > 1;
  Critic critic({.folder = run_folder, .start = start_model, .log = log, .ranks = has_others ? &ranks : nullptr});
  write_papers(config, run_folder, arguments, start,
               critic.model().model());  // not before: a rejected start must not change the run's files
  const ServedRows rows(start.folder, start.network, {max_length, ppo.add_bos, ppo.add_eos});
  log_info("critic of ", format_number(static_cast<double>(critic.model().model().trained().num_elements())), " trained parameters on ",
           name_of(mesh.device), has_others ? str(" of ", mesh.world.size(), " ranks") : "", ": ", critic.train_calls(),
           " training calls, ", critic.model().step(), " updates so far; folder ", run_folder.string());
  if (critic.model().gives_rewards()) log_info("the reward model it started from: ", start.memory.reward_model_text());
  log_info(format_bytes(start.memory.verdict.needed), " of memory needed at most, ", format_bytes(start.memory.verdict.free), " were free");
  const int code = serve_until_told({ppo, make_critic_service({critic, rows, batches, max_length}), mesh.device, begin});
  ranks.stop();
  return code;
}

}  // namespace kedge::cli
